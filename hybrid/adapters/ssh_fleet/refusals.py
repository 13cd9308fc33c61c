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
_OFFENDING = re.compile(r"Offending (?:\S+ )?key in (.+?):(\d+)", re.IGNORECASE)
_SSH_FAILED = 255
_NO_COMMAND = frozenset({126, 127})


def of_ssh(address: str, python: str, code: int, said: str) -> SshError:
    """Return what the end of an `ssh` without an answer means.

    Args:
        address: Where it was to go.
        python: The interpreter that was to run.
        code: Its exit code; 255 is ssh's own.
        said: What it wrote to standard error.
    """
    words = _last_words(said)
    where = shlex.quote(address)
    if code in _NO_COMMAND:
        return NoPythonError(
            f"there is no Python {python} on {address} ({words})",
            f"install it with Ray there, or set `python` of the host (or onprem.python) to the "
            f"one that has Ray; `ssh {where} command -v python3` shows one",
        )
    if code != _SSH_FAILED:
        return RemoteFailedError(
            f"the program on {address} ended with exit code {code}: {words}",
            f"run `ssh {where} {shlex.quote(python)} -V` to see whether it works by hand",
        )
    if _CHANGED.search(said):
        return _changed(address, said)
    if _UNKNOWN_KEY.search(said):
        return HostKeyUnknownError(
            f"the key of {address} is not known here",
            f"run `ssh {where} true` once as this user and compare the fingerprint that it shows; "
            "or set onprem.ssh.options to [StrictHostKeyChecking=accept-new]",
        )
    if _REFUSED.search(said):
        return AuthRefusedError(
            f"{address} does not let us in ({words})",
            f"add this user's public key to ~/.ssh/authorized_keys there (`ssh-copy-id {where}`), "
            "or load it into the agent; nobody can type a passphrase here",
        )
    if _NO_NAME.search(said):
        return HostNotFoundError(
            f"the name {address} leads nowhere ({words})",
            "correct `address` of the host, or add it to DNS, /etc/hosts or ~/.ssh/config",
        )
    if _AWAY.search(said) or not said.strip():
        return HostUnreachableError(
            f"{address} does not answer ({words})",
            f"power it on and see that its sshd runs: `ssh -v {where} true`; it is tried again "
            "by itself",
        )
    return RemoteFailedError(
        f"ssh to {address} failed: {words}", f"run `ssh -v {where} true` to see why"
    )


def too_old(address: str, python: str, version: str) -> SshError:
    """Return what it means that the interpreter cannot even run a look at the host."""
    return NoPythonError(
        f"{python} on {address} is Python {version}, which Ray left behind long ago",
        "set `python` of the host (or onprem.python) to the interpreter that has Ray",
    )


def too_slow(address: str, step: str, limit_s: float, said: str) -> SshError:
    """Return what it means that a step was not done in time."""
    words = f" ({_last_words(said)})" if said.strip() else ""
    return StepTimeoutError(
        f"{address}: {step} was not done in {limit_s:g} s{words}",
        f"see whether `ssh {shlex.quote(address)} true` is quick; a disk or a driver that hangs "
        "there, or a lossy network, looks like this",
    )


def _changed(address: str, said: str) -> HostKeyChangedError:
    place = _OFFENDING.search(said)
    file, line = (place[1], place[2]) if place else ("~/.ssh/known_hosts", "")
    remove = f"sed -i {line}d {shlex.quote(file)}" if line else f"ssh-keygen -R {address}"
    return HostKeyChangedError(
        f"{address} shows another key than the one on record"
        + (f" ({file} line {line})" if line else ""),
        "find out whether the machine was installed anew. If so, remove the old key "
        f"(`{remove}`) and run `ssh {shlex.quote(address)} true` once; if not, somebody may "
        "stand in between: nothing is sent there",
    )


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip(" @\t")]
    return lines[-1][-300:] if lines else "it said nothing"
