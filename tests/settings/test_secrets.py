"""Tests that a password goes in by one door and comes out by none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.settings import SettingsError, dump, explain
from hybrid.settings.words import has_password, masked
from tests.settings.writing import load_text, problem

CANARY = "hunter2-canary"
URL = f"postgresql+psycopg://user:{CANARY}@db:5432/hybrid"


def test_a_password_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    found = problem(tmp_path, f"name: a\ncontroller: {{ledger: '{URL}'}}")

    assert "controller.ledger: a password does not belong in this file" in found
    assert "HYBRID_LEDGER_URL" in found
    assert CANARY not in found


def test_a_password_from_the_environment_reaches_the_ledger_only(tmp_path: Path) -> None:
    settings = load_text(tmp_path, "name: a", {"HYBRID_LEDGER_URL": URL})

    assert settings.controller.ledger_url == URL
    shown = [repr(settings), str(settings), json.dumps(dump(settings)), str(explain(settings))]
    shown += [settings.model_dump_json(), str(settings.model_dump())]
    assert not any(CANARY in text for text in shown)
    assert (
        "controller.ledger",
        "postgresql+psycopg://user:***@db:5432/hybrid",
        "HYBRID_LEDGER_URL",
    ) in explain(settings)


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{CANARY}@h/d",
        f"postgresql+psycopg://u:{CANARY}@h:port/d",
        f"{CANARY}",
        f"sqlite://\0{CANARY}",
    ],
)
def test_a_bad_ledger_url_is_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, "name: a", {"HYBRID_LEDGER_URL": url})

    assert CANARY not in str(caught.value)
    assert "HYBRID_LEDGER_URL: controller.ledger: " in str(caught.value)


@pytest.mark.parametrize(
    "key", ["password", "secret_access_key", "ACCESS_KEY", "db_token", "apikey"]
)
def test_a_key_that_holds_a_secret_is_refused_and_its_value_not_repeated(
    tmp_path: Path, key: str
) -> None:
    text = f"name: a\nproviders: {{tide: {{{key}: {CANARY}}}}}"
    if key == "apikey":  # not one of the words; a provider refuses it
        assert load_text(tmp_path, text).providers["tide"] == {key: CANARY}
    else:
        found = problem(tmp_path, text)
        assert "a secret does not belong in this file" in found
        assert CANARY not in found


@pytest.mark.parametrize("key", ["key_name", "token_file", "secret_name", "tokenizer", "passport"])
def test_a_key_that_only_names_a_secret_is_accepted(tmp_path: Path, key: str) -> None:
    assert load_text(tmp_path, f"name: a\nproviders: {{tide: {{{key}: x}}}}").name == "a"


def test_a_label_may_have_any_name(tmp_path: Path) -> None:
    text = "name: a\nonprem: {hosts: [{name: b, labels: {token: ring}}]}"

    assert load_text(tmp_path, text).onprem.hosts[0].labels == {"token": "ring"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://h:5432/d", "postgresql+psycopg://h:5432/d"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql+psycopg://u:p@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgresql+psycopg://u:p@q#?&@h/d", "postgresql+psycopg://u:***@h/d"),
        (
            "postgresql+psycopg://u@h/d?a=1&Password=p&b=2",
            "postgresql+psycopg://u@h/d?a=1&Password=***&b=2",
        ),
        ("sqlite:////var/lib/x.db", "sqlite:////var/lib/x.db"),
    ],
)
def test_masked_hides_the_password_only(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert has_password(url) == (url != shown)
