"""The JSON schema of study files, by which editors complete and check them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from docstring_parser import parse_from_object

from mnmt_data.study.ranges import Interval, Ranges
from mnmt_data.study.sections import section_configs
from mnmt_data.study.structure import Changes
from mnmt_data.study.study_file import NAME, SECTIONS

DIALECT = "http://json-schema.org/draft-04/schema#"
"""The dialect of Taplo; of all dialects it alone does not take 2.0 for an integer."""

TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}

Schema = dict[str, Any]


def study_schema() -> Schema:
    """Return the JSON schema of the sections that the installed packages read; others may hold anything."""
    sections: Schema = {name: {"type": "object"} for name in SECTIONS}
    sections |= {name: _table(config) for name, config in section_configs().items()}
    name = {
        "type": "string",
        "pattern": f"^{NAME}$",
        "description": "Name of the study and of its results' folder.",
    }
    return {"$schema": DIALECT, "title": "Study of mnmt", **_object({"name": name, **sections}, ["name"])}


def _object(properties: Schema, required: list[str]) -> Schema:
    rest = {"required": required} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **rest}


def _table(config: type) -> Schema:
    """Return the schema of a dataclass."""
    properties = _keys(config)
    for field in _fields(config):
        if isinstance(field.default, bool | int | float | str):
            properties[field.name]["default"] = field.default
    required = [field.name for field in _fields(config) if field.default is field.default_factory]
    return _object(properties, required)


def _keys(config: type) -> Schema:
    """Return {key: its schema} of a dataclass; descriptions are the docstrings of its fields."""
    hints, texts = get_type_hints(config), parse_from_object(config).params
    about = {text.arg_name: " ".join((text.description or "").split()) for text in texts}
    intervals: Ranges = getattr(config, "RANGES", {})
    ranges = {name: dict(_bounds(Interval(text))) for text, names in intervals.items() for name in names}
    return {
        field.name: {
            **_schema(hints[field.name]),
            **ranges.get(field.name, {}),
            "description": about.get(field.name, ""),
        }
        for field in _fields(config)
    }


def _bounds(interval: Interval) -> Iterator[tuple[str, float | bool]]:
    for side, end, is_open in zip(("Minimum", "Maximum"), interval.ends, interval.is_open, strict=True):
        if isfinite(end):
            yield side.lower(), int(end) if end.is_integer() else end
            yield f"exclusive{side}", is_open


def _fields(config: Any) -> list[Field[Any]]:
    return [field for field in fields(config) if field.init]


def _schema(hint: Any) -> Schema:
    """Return the schema of the values of a type."""
    arguments = [argument for argument in get_args(hint) if argument is not NoneType]
    origin = get_origin(hint)
    if hint in TYPES:
        return {"type": TYPES[hint]}
    if origin is Literal:
        return {"enum": arguments}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin in (Union, UnionType):
        choices = [_schema(argument) for argument in arguments]
        return choices[0] if len(choices) == 1 else {"anyOf": choices}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    if isinstance(hint, type) and issubclass(hint, Changes):
        return _object({key: value for config in hint.configs for key, value in _keys(config).items()}, [])
    return _table(hint) if is_dataclass(hint) and isinstance(hint, type) else {}
