"""Plain tables into dataclasses, strictly: nothing is coerced, and a mistake is named by its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.cols import homogenous_tuple_structure_factory, is_mapping, mapping_structure_factory
from cattrs.gen import make_dict_structure_fn

Config = TypeVar("Config")
Hook = Callable[[Any, Any], Any]

SCALARS: dict[type, tuple[type | tuple[type, ...], str]] = {
    bool: (bool, "true or false"),
    int: (int, "an integer"),
    float: ((int, float), "a number"),
    str: (str, "a string"),
    Path: (str, "a path in quotes"),
}


class StructureError(ValueError):
    """A value does not fit the dataclass; the message is one line that begins with the key."""


def structure(table: Any, config: type[Config], *, where: str) -> Config:
    """The table as a dataclass, whose fields may be dataclasses, tuples, mappings, Literals or optional.

    Args:
        table: What TOML or JSON gave.
        config: The dataclass.
        where: Key of the table, with which messages begin.

    Raises:
        StructureError: Naming the first key that is unknown, missing, of a wrong type or refused by its
            dataclass.
    """
    try:
        return _converter().structure(table, config)
    except BaseValidationError as error:
        what, _, key = transform_error(error, where, _describe)[0].rpartition(" @ ")
    except TypeError as error:
        what, key = str(error), where
    raise StructureError(f"`{key}` {what}" if what.startswith("must be") else f"[{key}] {what}")


def _describe(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return "must be given, but is missing."
    if isinstance(error, ForbiddenExtraKeysError):
        valid = ", ".join(field.name for field in fields(error.cl) if field.init)
        return f"holds an unknown key `{min(error.extra_fields)}`; the valid ones are {valid}."
    return str(error)


@cache
def _converter() -> Converter:
    converter = Converter()
    for target, (accepted, meaning) in SCALARS.items():
        hook = _checked(accepted, meaning, lambda value, target: target(value))
        converter.register_structure_hook(target, hook)
    converter.register_structure_hook_func(_is_literal, _literal)
    converter.register_structure_hook_factory(is_dataclass, _dataclass)
    converter.register_structure_hook_factory(is_mapping, _mapping)
    converter.register_structure_hook_factory(_is_homogeneous_tuple, _tuple)
    return converter


def _checked(accepted: type | tuple[type, ...], meaning: str, hook: Hook) -> Hook:
    """`hook` after a check of the type, which cattrs leaves out: it would read "abc" as ("a", "b", "c")."""

    def check(value: Any, target: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and accepted is not bool):
            raise TypeError(f"must be {meaning}, but is {value!r}.")
        return hook(value, target)

    return check


def _is_literal(target: Any) -> bool:
    return get_origin(target) is Literal


def _literal(value: Any, target: Any) -> Any:
    if value not in get_args(target):
        raise ValueError(f"must be one of {', '.join(map(repr, get_args(target)))}, but is {value!r}.")
    return value


def _dataclass(target: Any, converter: Converter) -> Hook:
    hook = make_dict_structure_fn(target, converter, _cattrs_forbid_extra_keys=True)
    return _checked(Mapping, "a table", hook)


def _mapping(target: Any, converter: Converter) -> Hook:
    return _checked(Mapping, "a table", mapping_structure_factory(target, converter))


def _is_homogeneous_tuple(target: Any) -> bool:
    return get_origin(target) is tuple and get_args(target)[-1] is Ellipsis


def _tuple(target: Any, converter: Converter) -> Hook:
    return _checked(list, "an array", homogenous_tuple_structure_factory(target, converter))
