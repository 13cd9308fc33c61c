"""Why a host could not be worked with: one class for each thing a person does next."""

from __future__ import annotations

import re
import shlex

from hybrid.core.errors import FleetError


class SshError(FleetError):
    """A host could not be worked with.

    Attributes:
        found: What is wrong.
        remedy: What to do.
    """

    is_away = False
    """Whether the host may answer later without anybody doing anything."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(f"{found}. {remedy[:1].upper()}{remedy[1:]}")
        self.found = found
        self.remedy = remedy


class HostKeyChangedError(SshError):
    """The host shows another key than the one on record: another machine, or a new system."""


class HostKeyUnknownError(SshError):
    """The host's key is not on record."""


class AuthRefusedError(SshError):
    """The host does not let us in."""


class HostNotFoundError(SshError):
    """The host's name leads to no address."""


class HostUnreachableError(SshError):
    """Nothing answers there: powered off, rebooting, cut off."""

    is_away = True


class StepTimeoutError(SshError):
    """The host answers, but one step took too long."""

    is_away = True


class NoPythonError(SshError):
    """The interpreter that is configured is not on the host."""


class RemoteFailedError(SshError):
    """What ran on the host failed."""


class HostUnfitError(SshError):
    """The host works, but it must not join like this."""


_CHANGED = re.compile(
    r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key .*has changed", re.IGNORECASE
)
_UNKNOWN_KEY = re.compile(r"Host key verification failed|No \S+ host key is known", re.IGNORECASE)
_REFUSED = re.compile(
    r"Permission denied|Too many authentication failures|No more authentication methods"
    r"|no mutual signature|Load key .*: (?:invalid|error|bad)",
    re.IGNORECASE,
)
_NO_NAME = re.compile(r"Could not resolve hostname", re.IGNORECASE)
_AWAY = re.compile(
    r"Connection (?:timed out|refused|reset|closed)|No route to host|Network is unreachable"
    r"|Operation timed out|kex_exchange_identification|banner exchange|Broken pipe"
    r"|not responding|Connection to \S+ closed|control socket",
    re.IGNORECASE,
)
_OUR_CALL = re.compile(
    r"Bad configuration option|bad configuration options|command-line:? line \d+"
    r"|Can't open user config file|Bad owner or permissions on",
    re.IGNORECASE,
)
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_READ_ONLY = re.compile(r"Read-only file system", re.IGNORECASE)
_NOT_THERE = re.compile(r"not found|no such file|unknown command", re.IGNORECASE)
_CANNOT_RUN = re.compile(r"denied|cannot|is a directory|exec format", re.IGNORECASE)
_OFFENDING = re.compile(r"Offending (?:\S+ )?key in (.+?):(\d+)", re.IGNORECASE)
# What steers a terminal, and other characters without a shape.
_HIDDEN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
)
_WORD = re.compile(r"\w")
# What Python writes below the reason when it cannot even start.
_NO_WORDS = re.compile(r"Current thread .*|Thread 0x.*|<no Python frame>")
_SSH_FAILED = 255
_CANNOT_BE_RUN = 126
_NO_COMMAND = frozenset({_CANNOT_BE_RUN, 127})
_NO_COMMAND_OF_CSH = re.compile(r"Command not found\.\s*$")  # its code is 1


def of_ssh(
    address: str, python: str, code: int, said: str, *, printed: str = "", by_hand: str = ""
) -> SshError:
    """Return what the end of an `ssh` without an answer means.

    Args:
        address: Where it was to go.
        python: The interpreter that was to run.
        code: Its exit code; 255 is ssh's own.
        said: What it wrote to standard error.
        printed: The last of what it wrote to standard output.
        by_hand: The `ssh` that a person can call to see the same.
    """
    hand = by_hand or f"ssh {shlex.quote(address)}"
    if code == _SSH_FAILED:
        return _of_ssh_itself(address, said, hand)
    if code in _NO_COMMAND or (code == 1 and _NO_COMMAND_OF_CSH.search(said)):
        return _no_python(address, python, code, said, hand)
    return _of_program(address, python, code, said or printed, hand)


def shell_word(path: str) -> str:
    """Return a path as one word of the host's shell, in which `~/` leads home."""
    if path.startswith("~/"):
        return f"~/{shlex.quote(path[2:])}"
    return shlex.quote(path)


def _no_python(address: str, python: str, code: int, said: str, hand: str) -> SshError:
    is_there = code == _CANNOT_BE_RUN
    reason = _CANNOT_RUN if is_there else _NOT_THERE
    words = next((line[:300] for line in _lines(said) if reason.search(line)), _last_words(said))
    where = f"{python} on {address}"
    return NoPythonError(
        f"{where} cannot be run ({words})" if is_there else f"there is no Python {where} ({words})",
        "install it with Ray there, or set `python` of the host (or onprem.python) to the one "
        f"that has Ray, without arguments; `{hand} command -v python3` shows one",
    )


def _of_program(address: str, python: str, code: int, said: str, hand: str) -> SshError:
    words = _last_words(said)
    look = f"`{hand} {shlex.quote(f'{shell_word(python)} -c 1')}`"
    if code == 0:
        return RemoteFailedError(
            f"{address} ran something else in place of {python}: {words}",
            f"see what it is ({look}): a start-up file of the login shell that ends it, sshd's "
            "ForceCommand, or `python` set to another program",
        )
    found = f"the program on {address} ended with exit code {code}: {words}"
    if _NO_ROOM.search(said):
        return RemoteFailedError(
            found, "make room in its home folder and /tmp: `df -h` and `df -i` there show the disks"
        )
    if _READ_ONLY.search(said):
        return RemoteFailedError(
            found, "repair that disk: Linux makes one read-only that fails; `dmesg` there says why"
        )
    return RemoteFailedError(found, f"run {look} to see whether it works by hand")


def _of_ssh_itself(address: str, said: str, hand: str) -> SshError:
    words = _last_words(said)
    where = shlex.quote(address)
    if _CHANGED.search(said):
        return _changed(address, said, hand)
    if _UNKNOWN_KEY.search(said):
        return HostKeyUnknownError(
            f"the key of {address} is not known here",
            f"run `{hand} true` once as this user and compare the fingerprint that it shows; "
            "or set onprem.ssh.options to [StrictHostKeyChecking=accept-new]",
        )
    if _REFUSED.search(said):
        return AuthRefusedError(
            f"{address} does not let us in ({words})",
            f"add this user's public key to ~/.ssh/authorized_keys there (`ssh-copy-id {where}`), "
            "or load it into the agent; nobody can type a passphrase here. If the key is right, "
            "the log of its sshd says why: an account without a valid shell looks the same",
        )
    if _OUR_CALL.search(said):
        return RemoteFailedError(
            f"ssh cannot be called as configured: {words}",
            "correct onprem.ssh (options, config) or ~/.ssh/config",
        )
    if _NO_NAME.search(said):
        return HostNotFoundError(
            f"the name {address} leads nowhere ({words})",
            "correct `address` of the host, or add it to DNS, /etc/hosts or ~/.ssh/config",
        )
    if _AWAY.search(said) or not said.strip():
        return HostUnreachableError(
            f"{address} does not answer ({words})",
            f"power it on and see that its sshd runs, and the hosts on the way to it (ProxyJump): "
            f"`{hand} -v true`; it is tried again by itself",
        )
    return RemoteFailedError(
        f"ssh to {address} failed: {words}", f"run `{hand} -v true` to see why"
    )


def too_old(address: str, python: str, version: str) -> SshError:
    """Return what it means that the interpreter cannot even run a look at the host."""
    return NoPythonError(
        f"{python} on {address} is Python {version}, which Ray left behind long ago",
        "set `python` of the host (or onprem.python) to the interpreter that has Ray",
    )


def too_slow(address: str, step: str, limit_s: float, said: str, *, by_hand: str = "") -> SshError:
    """Return what it means that a step was not done in time."""
    hand = by_hand or f"ssh {shlex.quote(address)}"
    words = f"; the last that it said: {_last_words(said)}" if said.strip() else ""
    return StepTimeoutError(
        f"{address}: {step} was not done in {limit_s:g} s{words}",
        f"see whether `{hand} true` is quick; a disk or a driver that hangs there, a start-up file "
        "of its shell that waits, or a lossy network looks like this",
    )


def _changed(address: str, said: str, hand: str) -> HostKeyChangedError:
    place = _OFFENDING.search(said)
    file, line = (place[1], place[2]) if place else ("~/.ssh/known_hosts", "")
    remove = f"sed -i {line}d {shlex.quote(file)}" if line else f"ssh-keygen -R {address}"
    return HostKeyChangedError(
        f"{address} shows another key than the one on record"
        + (f" ({file} line {line})" if line else ""),
        "find out whether the machine was installed anew. If so, remove the old key "
        f"(`{remove}`) and run `{hand} true` once; if not, somebody may "
        "stand in between: nothing is sent there",
    )


def _last_words(said: str) -> str:
    lines = _lines(said)
    return lines[-1][-300:] if lines else "it said nothing"


def _lines(said: str) -> list[str]:
    """Return the lines that hold words, as they may be shown: without what steers a terminal."""
    lines = [_HIDDEN.sub("", line).strip() for line in said.splitlines()]
    return [line for line in lines if _WORD.search(line) and not _NO_WORDS.fullmatch(line)]
