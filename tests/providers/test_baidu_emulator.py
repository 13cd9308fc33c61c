"""The emulator of BCC: it takes what the vendor's SDK signs, and nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.emulators.baidu import ACCESS_KEY, SECRET_KEY, BaiduEmulator, Fault, start
from tests.emulators.baidu.signature import Secret, Signed, verify
from tests.emulators.baidu.wire import ApiError

NOW_S = 1_795_000_000.0
URI = "/v2/instance/i-1?clientToken=a%2Fb%20%E4%B8%AD&autorelease="
HEADERS = {
    b"host": b"bcc.bj.baidubce.com",
    b"x-bce-date": b"2026-11-19T00:00:00Z",
    b"content-type": b"application/json;charset=utf-8",
    b"content-length": b"12",
    b"user-agent": b"x",
}


def signed_by_the_sdk(
    *, uri: str = URI, headers: Mapping[bytes, bytes] = HEADERS, age_s: float = 0
) -> dict[str, str]:
    """Return the headers of a PUT as the vendor's own signer makes them."""
    from urllib.parse import parse_qsl

    from baidubce.auth.bce_credentials import BceCredentials
    from baidubce.auth.bce_v1_signer import sign

    path, _, query = uri.partition("?")
    authorization = sign(
        BceCredentials(ACCESS_KEY, SECRET_KEY),
        b"PUT",
        path.encode(),
        dict(headers),
        dict(parse_qsl(query, keep_blank_values=True)),
        timestamp=int(NOW_S - age_s),
    )
    plain = {name.decode(): value.decode() for name, value in headers.items()}
    return plain | {"authorization": authorization.decode()}


def judge(
    headers: Mapping[str, str], *, method: str = "PUT", uri: str = URI, secret: str = SECRET_KEY
) -> str:
    """Return the code that a request is refused with; `""` when it is accepted."""
    try:
        verify(Signed(method, uri, headers), {ACCESS_KEY: Secret(secret)}, now_s=NOW_S)
    except ApiError as err:
        return err.code
    return ""


def test_what_the_sdk_signs_is_accepted() -> None:
    assert judge(signed_by_the_sdk()) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"uri": URI.replace("i-1", "i-2")},
        {"uri": URI.replace("%2F", "%2f%2F")},
        {"uri": f"{URI}&force=true"},
        {"uri": URI.partition("?")[0]},
        {"secret": "another"},
    ],
    ids=["method", "path", "slash", "more", "less", "secret"],
)
def test_a_changed_request_is_refused(change: dict[str, str]) -> None:
    assert judge(signed_by_the_sdk(), **change) == "SignatureDoesNotMatch"


@pytest.mark.parametrize("name", ["host", "x-bce-date", "content-type", "content-length"])
def test_a_changed_header_is_refused(name: str) -> None:
    assert judge(signed_by_the_sdk() | {name: "changed"}) == "SignatureDoesNotMatch"


def test_a_header_that_is_not_signed_may_change() -> None:
    assert judge(signed_by_the_sdk() | {"user-agent": "y", "connection": "close"}) == ""


def test_a_token_that_was_not_signed_is_refused() -> None:
    headers = signed_by_the_sdk() | {"x-bce-security-token": "t"}

    assert judge(headers) == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    ("age_s", "code"),
    [(1799, ""), (1801, "RequestExpired"), (-1799, ""), (-1801, "RequestExpired")],
)
def test_a_request_lives_for_half_an_hour(age_s: float, code: str) -> None:
    assert judge(signed_by_the_sdk(age_s=age_s)) == code


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ("", "AccessDenied"),
        ("Bearer x", "InvalidHTTPAuthHeader"),
        (f"bce-auth-v1/{ACCESS_KEY}/2026-11-19T00:00:00Z/1800//short", "InvalidHTTPAuthHeader"),
        (f"bce-auth-v1/none/2026-11-19T00:00:00Z/1800//{'0' * 64}", "InvalidAccessKeyId"),
    ],
)
def test_an_authorization_that_is_none_is_refused(authorization: str, code: str) -> None:
    assert judge(signed_by_the_sdk() | {"authorization": authorization}) == code


# --- over the wire --------------------------------------------------------------------------


@pytest.fixture
def emulator() -> Iterator[BaiduEmulator]:
    made = start()
    yield made
    made.stop()


def ask(url: str, content: object = None) -> tuple[int, Any]:
    data = None if content is None else json.dumps(content).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as err:
        with err:
            return err.code, json.loads(err.read())


def test_an_unsigned_request_is_refused_and_not_kept(emulator: BaiduEmulator) -> None:
    status, answer = ask(f"{emulator.url}/v2/instance")

    assert (status, answer["code"]) == (403, "AccessDenied")
    assert set(answer) == {"code", "message", "requestId"}
    assert emulator.requests == []


def test_it_can_be_controlled_over_the_wire(emulator: BaiduEmulator) -> None:
    control = f"{emulator.url}/_emulator"

    ask(f"{control}/faults", {"what": "html", "call": "GET", "times": 2})
    ask(f"{control}/set", {"quota": 0})

    assert emulator.faults == [Fault("html", call="GET", times=2)]
    assert emulator.cloud.quota == 0
    assert ask(f"{control}/requests") == (200, {"requests": []})
    assert ask(f"{control}/nonsense", {})[0] == 404


def test_a_field_that_the_api_does_not_know_shows(emulator: BaiduEmulator) -> None:
    with pytest.raises(ApiError, match="sizeInGb"):
        emulator.cloud.create({"clientToken": "t"}, {"sizeInGb": 40})


def test_it_ends_twice_and_its_port_is_free_again(emulator: BaiduEmulator) -> None:
    emulator.stop()
    emulator.stop()

    again = start(emulator.port)
    assert again.url == emulator.url
    again.stop()


def test_it_runs_alone_and_says_how_to_use_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.emulators", "baidu"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert first.startswith("baidu: http://127.0.0.1:")
        url = first.split()[1]
        assert ask(f"{url}/v2/instance")[0] == 403
        process.send_signal(signal.SIGINT)
        usage = process.stdout.read()
    finally:
        process.terminate()
        code = process.wait(timeout=10)
        process.stdout.close()
    assert code == 0
    assert f'endpoints: {{bj: "{url}"}}' in usage
    assert "_emulator/faults" in usage


def test_time_can_be_moved(emulator: BaiduEmulator) -> None:
    emulator.cloud.ahead_s = 3600

    assert emulator.cloud._now_s() == pytest.approx(time.time() + 3600, abs=5)


def test_every_code_that_is_invented_is_named_in_the_documentation() -> None:
    root = Path(__file__).parents[2]
    sources = [file.read_text() for file in sorted((root / "tests/emulators/baidu").glob("*.py"))]
    marked = [line for text in sources for line in text.splitlines() if "# invented" in line]
    codes = {re.findall(r'"([A-Z][A-Za-z.]+)"', line)[0] for line in marked}
    page = (root / "docs/fidelity/baidu.md").read_text()

    (named,) = re.findall(r"The invented codes of the emulator: (.*)", page)
    assert codes == set(re.findall(r"`([^`]+)`", named))
