"""The keys for Baidu AI Cloud: wrong, missing, temporary, and never in a log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.core.errors import (
    AuthError,
)
from providers.baidu.credentials import VARIABLES
from tests.emulators.baidu import ACCESS_KEY, SECRET_KEY
from tests.emulators.baidu.signature import Secret
from tests.providers.baidu_cloud import (
    BaiduCloud,
    baidu_cloud,
)
from tests.providers.contract import launch, live, make_spec


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BaiduCloud]:
    with baidu_cloud(monkeypatch) as made:
        yield made


@pytest.mark.parametrize(
    ("access_key", "secret_key", "code", "variable"),
    [
        (ACCESS_KEY, "wrong", "SignatureDoesNotMatch", VARIABLES[1]),
        ("ALTAKunknown", SECRET_KEY, "InvalidAccessKeyId", VARIABLES[0]),
    ],
)
def test_wrong_keys_are_an_auth_error_that_says_what_to_check(
    cloud: BaiduCloud,
    monkeypatch: pytest.MonkeyPatch,
    access_key: str,
    secret_key: str,
    code: str,
    variable: str,
) -> None:
    monkeypatch.setenv(VARIABLES[0], access_key)
    monkeypatch.setenv(VARIABLES[1], secret_key)

    with pytest.raises(AuthError) as caught:
        cloud.provider().list_instances()

    assert caught.value.code == code
    assert f"check the {'access' if variable == VARIABLES[0] else 'secret'} key" in str(
        caught.value
    )
    assert variable in str(caught.value)
    assert secret_key not in str(caught.value)


def test_missing_keys_are_an_auth_error_that_says_where_to_put_them(
    cloud: BaiduCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLES[1])
    provider = cloud.provider()  # a file can be checked without keys

    with pytest.raises(AuthError, match=VARIABLES[1]):
        launch(provider, make_spec(cloud))

    assert provider.offers()
    assert cloud.emulator.requests == []


@pytest.mark.parametrize("ahead_s", [3600, -3600])
def test_a_clock_that_is_wrong_is_an_auth_error_that_says_so(
    cloud: BaiduCloud, ahead_s: float
) -> None:
    cloud.emulator.clock_ahead_s = ahead_s

    with pytest.raises(AuthError, match="clock"):
        cloud.provider().list_instances()


def test_temporary_keys_work_until_they_end_and_can_be_renewed(
    cloud: BaiduCloud, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    cloud.account["credentials_file"] = str(file)
    emulator, provider = cloud.emulator, cloud.provider()
    emulator.secrets = {"temp1": Secret("s1", "token/1+=", until_s=time.time() + 60)}
    write_keys(
        file, '{"accessKeyId": "temp1", "secretAccessKey": "s1", "sessionToken": "token/1+="}'
    )
    launch(provider, make_spec(cloud))

    emulator.secrets["temp1"] = Secret("s1", "token/1+=", until_s=time.time() - 1)
    with pytest.raises(AuthError):
        provider.list_instances()
    emulator.secrets["temp2"] = Secret("s2", "token2")
    write_keys(file, '{"accessKeyId": "temp2", "secretAccessKey": "s2", "sessionToken": "token2"}')

    assert len(live(provider)) == 1


def write_keys(file: Path, content: str) -> None:
    file.touch(mode=0o600)
    file.write_text(content)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ('{"accessKeyId": "a", "secretAccessKey": "s"}', 0o644, "chmod 600"),
        ('{"accessKeyId": "a", "secretAccessKey": ""}', 0o600, "holds no keys"),
        ('{"accessKeyId": "a", "secretAccessKey": 5}', 0o600, "holds no keys"),
        ('["a"]', 0o600, "holds no keys"),
        ("s3cret", 0o600, "holds no keys"),
        ('{"accessKeyId": "a b", "secretAccessKey": "s3cret"}', 0o600, "odd characters"),
    ],
)
def test_a_bad_file_of_keys_is_an_auth_error(
    cloud: BaiduCloud, tmp_path: Path, content: str, mode: int, words: str
) -> None:
    file = tmp_path / "keys.json"
    write_keys(file, content)
    file.chmod(mode)
    cloud.account["credentials_file"] = str(file)

    with pytest.raises(AuthError, match=words) as caught:
        cloud.provider().list_instances()

    assert "s3cret" not in str(caught.value)


def test_a_missing_file_of_keys_is_an_auth_error(cloud: BaiduCloud, tmp_path: Path) -> None:
    cloud.account["credentials_file"] = str(tmp_path / "none.json")

    with pytest.raises(AuthError, match=r"none\.json"):
        cloud.provider().list_instances()


def test_no_key_token_or_signature_reaches_a_log(
    cloud: BaiduCloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sdk = logging.getLogger("baidubce")
    sdk.setLevel(logging.DEBUG)

    launch(cloud.provider(), make_spec(cloud))
    cloud.emulator.refuse("auth", call="GET /v2/instance")
    with pytest.raises(AuthError) as caught:
        cloud.provider().list_instances()

    assert sdk.level >= logging.INFO
    signed = cloud.create_call().headers["authorization"]
    for text in (caplog.text, str(caught.value)):
        for secret in (SECRET_KEY, signed, "join-once", cloud.create_call().body["userData"]):
            assert secret not in text
