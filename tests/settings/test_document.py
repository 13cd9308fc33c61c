"""Tests of reading YAML: what it means, on which line it stands, and how bad files are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.settings import SettingsError
from hybrid.settings.document import parse
from hybrid.settings.scalars import resolve


def refusal(text: str) -> str:
    """Return why `text` is refused."""
    with pytest.raises(SettingsError) as caught:
        parse(text, "f.yaml")
    return str(caught.value)


def test_parse_keeps_the_line_of_every_value() -> None:
    document = parse("a: 1\nb:\n  - c: 2\n  - d:\n      e: 3\n", "f.yaml")

    assert document.lines[("a",)] == 1
    assert document.lines["b", 0, "c"] == 3
    assert document.lines["b", 1, "d", "e"] == 5


def test_parse_keeps_unquoted_words_as_they_were_written() -> None:
    document = parse("a: off\nb: 2.60\nc: 1:30\nd: 0123\ne: 2026-01-01\nf: ~\n", "f.yaml")

    assert document.content == {
        "a": "off",
        "b": "2.60",
        "c": "1:30",
        "d": "0123",
        "e": "2026-01-01",
        "f": None,
    }


def test_resolve_gives_unquoted_words_their_yaml_types() -> None:
    document = parse("a: [1, -2.5, 1e3, true, off, '3', null, .5, 1.2.3]\nb: {c: 7}", "f.yaml")

    assert resolve(document.content) == {
        "a": [1, -2.5, 1000.0, True, "off", "3", None, 0.5, "1.2.3"],
        "b": {"c": 7},
    }


def test_parse_gives_a_mapping_what_its_anchor_holds_and_its_own_keys_win() -> None:
    document = parse("x: &x {k: 1, l: 2}\na:\n  <<: *x\n  k: 3\n", "f.yaml")

    assert document.content["a"] == {"k": "3", "l": "2"}
    assert document.lines["a", "k"] == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n\tb: 1", "a tab where YAML allows only spaces; indent with spaces (line 2)"),
        ("a: b: c", "a second ': ' on a line"),
        ("b: 1\na: [1, 2\nc: 3", "(line 2)"),
        ("b: 1\na: 'x\nc: 3", "a quote or bracket is not closed (line 2)"),
        ("a: {b: 1", "a bracket or brace is not closed (line 1)"),
        ("a: *b", "an alias (`*name`) without its anchor"),
        ("a: 1\n---\nb: 2", "a second document (`---`); keep one in a file (line 2)"),
        ("a: @x", "put quotes around it (line 1)"),
        ("a: *", "put quotes around it (line 1)"),
        (
            "a:\n  b: 1\n c: 2",
            "wrong indentation; keys of one mapping begin in one column (line 3)",
        ),
        ("a: 'b' c", "text after a closing quote; put all of it in quotes (line 1)"),
        ('a: "x\\qy"', "a backslash in double quotes; use single quotes (line 1)"),
        ('a: "\\U99999999"', "an escape that is no character"),
        ("b: 1\na: \x07", r"it holds the control character '\x07'; remove it (line 2)"),
        ("%YAML 3.0\n---\na: 1", "it is not YAML"),
        ("a: " + "[" * 5_000, "it is nested too deeply; flatten it"),
        ("", "it is empty; begin with `name: my-cluster`"),
        ("# only a comment\n", "it is empty"),
        ("null", "it is empty"),
        ("- a\n- b", "it holds a list; write keys such as `name: my-cluster` (line 1)"),
        ("just words", "it holds a single value; write keys such as `name: my-cluster` (line 1)"),
    ],
)
def test_parse_refuses_what_is_no_yaml_mapping_and_says_where(text: str, message: str) -> None:
    found = refusal(text)

    assert found.startswith("f.yaml: ")
    assert message in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb: 2\na: 3",
            "f.yaml: a: the key 'a' is here twice (first on line 1); keep one (line 3)",
        ),
        ("a: {b: 1, b: 2}", "f.yaml: a.b: the key 'b' is here twice"),
        ("a: !foo 1", "f.yaml: a: the tag !foo is not known here; remove it (line 1)"),
        ("a: !!python/object:os.system x", "is not known here; remove it"),
        ("? [x]\n: 1", "f.yaml: a key must be a word; write `key: value` (line 1)"),
        ("a: &x [*x]", "f.yaml: a[0]: an alias that holds itself; write the value out (line 1)"),
        ("a: {<<: 5}", "f.yaml: a: `<<` takes a mapping, such as `<<: *name` (line 1)"),
    ],
)
def test_parse_reads_on_after_a_local_mistake(text: str, message: str) -> None:
    document = parse(text, "f.yaml")

    assert message in document.problems[0].describe("f.yaml")


def test_parse_stops_at_a_tree_of_aliases_that_stands_for_billions_of_values() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    assert "its aliases stand for more than 50000 values" in refusal("\n".join(lines))


@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?~\\ \t\n<.0", max_size=40))
def test_parse_answers_every_text_with_a_document_or_a_settings_error(text: str) -> None:
    try:
        document = parse(text, "f.yaml")
    except SettingsError as err:
        assert str(err).startswith("f.yaml: ")  # noqa: PT017  # both outcomes are fine
    else:
        assert isinstance(document.content, dict)
