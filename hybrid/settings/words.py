"""Reads one word of a configuration: a name, an address, a label, a database.

Every reader raises `ValueError` with one sentence: what is wrong, then `;`, then what to write.
Not `TypeError`: pydantic collects `ValueError` only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from hybrid.core.gpu_names import named
from hybrid.core.prices import USD
from hybrid.core.quantity import shown
from hybrid.settings.readers import decimal, text
from hybrid.settings.scalars import resolve

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
CURRENCY = re.compile(r"[A-Z]{3}")
INFRA = re.compile(r"[a-z][a-z0-9_-]{0,30}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,62}){0,2}")

# Kubernetes' rule for labels, which Ray follows.
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_LABEL_KEY = re.compile(rf"(?:{_LABEL.pattern}(?:\.{_LABEL.pattern})*/)?{_LABEL.pattern}")
# Nothing that a shell or ssh could take for more than an address.
_SSH_ADDRESS = re.compile(
    r"(?:ssh://(?:[\w.-]+@)?(?:[\w.-]+|\[[0-9A-Fa-f:.%\w]+\])(?::[0-9]{1,5})?"
    r"|(?:[\w.-]+@)?[\w.:%-]+)",
    re.ASCII,
)
_HAS_PORT = re.compile(r"(?:[\w.-]+@)?[\w.-]+:[0-9]{1,5}", re.ASCII)
_SSH_PORT = re.compile(r"ssh://.*:([0-9]+)\Z", re.ASCII)
_PORT_MAX = 65_535
_SSH_OPTION = re.compile(r"([A-Za-z][A-Za-z0-9]*)=(\S.*)")
_OUR_SSH_OPTIONS = frozenset(
    (
        *("batchmode", "controlmaster", "controlpath", "controlpersist", "requesttty"),
        *("remotecommand", "forwardagent", "clearallforwardings", "connecttimeout"),
    )
)
_OUR_LABELS = frozenset(
    (
        *("site", "provider", "region", "zone", "market", "instance-type", "accelerator"),
        *("host", "role"),
    )
)
_OUR_PREFIX = "hybrid-"
_ADDRESS_CHARS = 320  # a user, a name of DNS at its longest, and a port
# Up to the last `@`: a password may hold one by mistake, and hiding too much is harmless.
_PASSWORD = re.compile(r"(://[^:/@?]*:).+(?=@)")
_PASSWORD_OPTION = re.compile(r"([?&]password=)[^&]+", re.IGNORECASE)
_LEDGER_SCHEMES = ("postgresql+psycopg", "sqlite")


def name(value: object) -> str:
    """Read the name of a cluster: it becomes a folder, a tag and part of host names."""
    word = text(value, "a name", "text, for example lab-1")
    if not NAME.fullmatch(word):
        raise ValueError(
            f"{shown(word)} is not a name; write a small letter, then up to 30 small letters, "
            "digits or '-', for example lab-1"
        )
    return word


def host_name(value: object) -> str:
    """Read the name of an on-prem host: it becomes a folder and a label."""
    word = text(value, "a host name", "text, for example gpu-0")
    if not HOST_NAME.fullmatch(word) or ".." in word:
        raise ValueError(
            f"{shown(word)} is not a host name; write up to 63 letters, digits, '-', '_' or '.', "
            "the first and last a letter or digit"
        )
    if word.lower() == "head":
        raise ValueError(f"{shown(word)} is the head's own name; write another")
    return word


def service_name(value: object) -> str:
    """Read the name of a service."""
    word = text(value, "a name", "text, for example chat")
    if not HOST_NAME.fullmatch(word):
        raise ValueError(
            f"{shown(word)} is not a name; write up to 63 letters, digits, '-', '_' or '.', the "
            "first and last a letter or digit"
        )
    return word


def env_name(value: object) -> str:
    """Read the name of an environment variable."""
    word = text(value, "a variable", "its name, for example PROMETHEUS_TOKEN")
    if not ENV_NAME.fullmatch(word):
        raise ValueError(
            "this is not the name of a variable; write its name, for example PROMETHEUS_TOKEN, "
            "and never the secret itself"
        )
    return word


def http_url(value: object) -> str:
    """Read the address of a server that speaks HTTP; credentials in it are refused."""
    url = text(value, "a URL", "http://HOST:PORT")
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
        _ = parts.port
    except ValueError:
        is_url = False
        parts = urlsplit("")
    if not is_url or parts.query or parts.fragment:
        raise ValueError("this is not the URL of a server; write http://HOST:PORT, or with https")
    if "@" in parts.netloc:
        raise ValueError("a password does not belong in this file; remove it and set basic_env")
    return url.rstrip("/")


def host_address(value: object) -> str:
    """Read where a host is: `local`, or what `ssh` takes."""
    word = text(value, "an address", "local, or what ssh takes, for example ops@10.0.0.7")
    if _HAS_PORT.fullmatch(word):
        raise ValueError(f"{shown(word)} has a port; write ssh://{word}")
    if not _SSH_ADDRESS.fullmatch(word) or word.startswith("-") or len(word) > _ADDRESS_CHARS:
        raise ValueError(
            f"{shown(word)} is not an address; write local, HOST, USER@HOST or ssh://USER@HOST:PORT"
        )
    if (port := _SSH_PORT.search(word)) and not 1 <= int(port[1]) <= _PORT_MAX:
        raise ValueError(f"{shown(word)} has no usable port; write one within 1..{_PORT_MAX}")
    if word.lower() == "local" != word:
        raise ValueError(f"{shown(word)} is not an address; write local in small letters")
    return word


def ssh_options(value: object) -> tuple[str, ...]:
    """Read options as `ssh -o` takes them, except those that this program sets itself."""
    options = [value] if isinstance(value, str) else value  # as in an environment variable
    if not isinstance(options, list | tuple):
        raise ValueError(f"{shown(value)} is not a list; write [ProxyJump=bastion]")  # noqa: TRY004
    for option in options:
        line = line_of_text(option)
        match = _SSH_OPTION.fullmatch(line)
        if match is None:
            raise ValueError(
                f"{shown(line)} is not an option of ssh; write NAME=VALUE, for example "
                "ProxyJump=bastion"
            )
        if match[1].lower() in _OUR_SSH_OPTIONS:
            raise ValueError(f"the option {match[1]} is set by this program; remove it")
    return tuple(options)


def python_path(value: object) -> str:
    """Read the interpreter on a host: a name, an absolute path or one below `~/`."""
    line = line_of_text(value)
    is_path = line.startswith(("/", "~/"))
    is_folder = line == "~" or line.endswith("/")
    if line.startswith("-") or is_folder or ("/" in line and not is_path):
        raise ValueError(
            f"{shown(line)} is not an interpreter; write for example python3.11 or ~/ray/bin/python"
        )
    return line


def infra(value: object) -> str:
    """Read where a pool is: a provider, its region and its zone."""
    word = text(value, "a cloud", "PROVIDER or PROVIDER/REGION, for example local")
    if not INFRA.fullmatch(word):
        raise ValueError(
            f"{shown(word)} is not a cloud; write PROVIDER, PROVIDER/REGION or "
            "PROVIDER/REGION/ZONE, for example local"
        )
    return word


def head_address(value: object) -> str:
    """Read the address at which nodes reach the head: `local`, or an IP address of its machine."""
    if value == "local":
        return "local"
    word = text(value, "an IP address", "local, or the address that nodes reach, such as 10.0.0.5")
    try:
        address = ipaddress.ip_address(word)
    except ValueError as err:
        raise ValueError(
            f"{shown(word)} is not an IP address; write local, or the address at which nodes reach "
            "this machine, such as 10.0.0.5 (the head runs where `hybrid up` runs)"
        ) from err
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        raise ValueError(
            f"{shown(word)} cannot be reached from other machines; write local, or the address at "
            "which nodes reach this machine, such as 10.0.0.5"
        )
    return str(address)


def bind_host(value: object) -> str:
    """Read the address that a server listens on."""
    word = text(value, "an IP address", "127.0.0.1")
    try:
        return str(ipaddress.ip_address("127.0.0.1" if word == "localhost" else word))
    except ValueError as err:
        raise ValueError(f"{shown(word)} is not an IP address; write 127.0.0.1") from err


def line_of_text(value: object) -> str:
    """Read one line of text."""
    line = text(value, "text", "it in quotes")
    if not line.strip() or not line.isprintable():
        raise ValueError(f"{shown(line)} is empty or holds control characters; write one line")
    return line


def labels(value: object) -> dict[str, str]:
    """Read Ray labels of a node, except those that this program sets itself."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)} is not a mapping; write {{rack: r7}}")  # noqa: TRY004  # see above
    return {str(key): _label(str(key), item) for key, item in value.items()}


def currency(value: object) -> str:
    """Read the code of a currency."""
    word = text(value, "a currency", "its code, for example CNY")
    if not CURRENCY.fullmatch(word):
        raise ValueError(f"{shown(word)} is not a currency; write its code, for example CNY")
    return word


def rates(value: object) -> dict[str, float]:
    """Read exchange rates: units of each currency for one US dollar."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)} is not a mapping; write {{CNY: 7.1}}")  # noqa: TRY004
    return {currency(str(key)): _rate(str(key), item) for key, item in value.items()}


def speeds(value: object) -> dict[str, float]:
    """Read how fast types of GPU are, against those that are not named."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)} is not a mapping; write {{H100: 2.1}}")  # noqa: TRY004
    return {named(str(key)): _speed(str(key), item) for key, item in value.items()}


def extras(value: object) -> dict[str, Any]:
    """Read keys that only a provider understands."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)} is not a mapping; write `key: value` lines")  # noqa: TRY004
    return {str(key): resolve(item) for key, item in value.items()}


def ledger_url(value: object) -> SecretStr:
    """Read the address of the ledger's database; errors never repeat it."""
    if isinstance(value, SecretStr):
        return value
    url = text(value, "a database URL", "postgresql+psycopg://HOST/DATABASE")
    scheme = url.partition("://")[0]
    if scheme not in _LEDGER_SCHEMES or "://" not in url or not url.isprintable():
        raise ValueError(
            "this is not a ledger that we know; write postgresql+psycopg://HOST/DATABASE or "
            "sqlite:///PATH, or leave it out for SQLite in the state folder"
        )
    try:
        _ = urlsplit(masked(url)).port
    except ValueError as err:
        raise ValueError(
            "the host or port of the URL is malformed; write postgresql+psycopg://HOST:PORT/DATABASE"
        ) from err
    return SecretStr(url)


def has_password(url: str) -> bool:
    """Return whether a database URL carries a password."""
    return masked(url) != url


def masked(url: str) -> str:
    """Return a database URL with `***` for its password."""
    return _PASSWORD_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1***", url))


def _rate(code: str, value: object) -> float:
    if code == USD:
        raise ValueError("a US dollar costs one US dollar; remove USD")
    try:
        number = decimal(value)
    except ValueError:
        number = 0.0
    if number <= 0:
        raise ValueError(
            f"{shown(value)} is not a rate of {code}; write how many {code} a US dollar costs, "
            "for example 7.1"
        )
    return number


def _speed(name: str, value: object) -> float:
    try:
        number = decimal(value)
    except ValueError:
        number = 0.0
    if number <= 0:
        raise ValueError(
            f"{shown(value)} is no speed of {name}; write how many times as fast as others it is "
            "for your work, for example 2.1"
        )
    return number


def _label(key: str, value: object) -> str:
    if not _LABEL_KEY.fullmatch(key):
        raise ValueError(
            f"{shown(key)} is not a label; write letters, digits, '-', '_' or '.', up to 63"
        )
    if key in _OUR_LABELS or key.startswith(("ray.io/", _OUR_PREFIX)):
        raise ValueError(f"the label {shown(key)} is set by this program or by Ray; remove it")
    word = str(value).lower() if isinstance(value, bool) else str(value or "")
    if isinstance(value, Mapping | list) or (word and not _LABEL.fullmatch(word)):
        raise ValueError(
            f"{shown(value)} is not a value for the label {shown(key)}; write letters, digits, "
            "'-', '_' or '.', up to 63, the first and last a letter or digit"
        )
    return word
