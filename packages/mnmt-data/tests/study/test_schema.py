import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from jsonschema.validators import Draft4Validator

from mnmt_data.cli import main
from mnmt_data.study import Changes, schema


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    kind: Literal["lexicon"] = "lexicon"


@dataclass(frozen=True, kw_only=True)
class Contexts:
    kind: Literal["contexts"] = "contexts"
    words: int = 3


class Part(Changes):
    configs = (Lexicon, Contexts)


@dataclass(frozen=True, kw_only=True)
class Data:
    tasks: tuple[str, ...]
    """Language
    pairs."""
    rate: float = 0.5
    column: int | str = ""
    path: Path | None = None
    use: Literal["all", True, False] = True
    languages: Lexicon | Contexts | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)


@pytest.fixture
def validator(monkeypatch):
    monkeypatch.setattr(schema, "section_configs", lambda: {"data": Data})
    result = schema.study_schema()
    Draft4Validator.check_schema(result)
    return Draft4Validator(result)


@pytest.mark.parametrize(
    "data",
    [
        {"tasks": []},
        {"tasks": ["en-de"], "rate": 1, "column": "name", "path": "a/b", "use": "all"},
        {"tasks": [], "column": 3, "use": False, "languages": {"kind": "contexts", "words": 4}},
        {"tasks": [], "weights": {"en-de": 0.5}, "parts": {"one": {"words": 4}, "two": {}}},
    ],
)
def test_what_can_be_read_is_valid(validator, data):
    assert validator.is_valid({"name": "s", "data": data, "model": {"of": "a package that is not installed"}})


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"tasks": "en-de"},
        {"tasks": [], "rates": 1},
        {"tasks": [], "rate": "1"},
        {"tasks": [], "column": 3.0},
        {"tasks": [], "column": True},
        {"tasks": [], "use": "none"},
        {"tasks": [], "languages": {"kind": "lexicon", "words": 4}},
        {"tasks": [], "weights": {"en-de": "1"}},
        {"tasks": [], "parts": {"one": {"word": 4}}},
        {"tasks": [], "parts": {"one": 4}},
    ],
)
def test_what_has_a_wrong_key_or_type_is_not(validator, data):
    assert not validator.is_valid({"name": "s", "data": data})


def test_names_and_sections_are_checked(validator):
    assert not validator.is_valid({"data": {"tasks": []}})
    assert not validator.is_valid({"name": "../up"})
    assert not validator.is_valid({"name": "s", "dat": {}})


def test_editors_show_docstrings_and_defaults(validator):
    keys = validator.schema["properties"]["data"]["properties"]
    assert keys["tasks"]["description"] == "Language pairs."
    assert (keys["rate"]["default"], "default" in keys["tasks"]) == (0.5, False)
    assert "default" not in keys["parts"]["additionalProperties"]["properties"]["words"]


def test_the_command_prints_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mnmt-data", "schema"])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, json.loads(capsys.readouterr().out)) == (0, schema.study_schema())
