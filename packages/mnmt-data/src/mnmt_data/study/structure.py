"""Turn tables of TOML or JSON into dataclasses: nothing is coerced, a mistake is named by its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, make_dataclass
from datetime import date
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

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


class Changes(dict[str, Any]):
    """A table as written, of any keys of several dataclasses, which a subclass names."""

    configs: ClassVar[tuple[type, ...]]

    @classmethod
    def table(cls) -> type:
        """Return a dataclass with all these keys, none of them required."""
        hints = {config: get_type_hints(config) for config in cls.configs}
        keys = [(field.name, hints[config][field.name], None) for config in hints for field in fields(config)]
        return make_dataclass("Keys", keys, kw_only=True)


class StructureError(ValueError):
    """A value does not fit the dataclass; the message is one line that begins with the key."""


Owners = Callable[[str], Sequence[str]]
"""Returns the tables that a key belongs to."""


def structure(table: Any, config: type[Config], *, where: str, owners: Owners = lambda key: ()) -> Config:
    """Turn a table into a dataclass, whose fields may be dataclasses, tuples, mappings, Literals or optional.

    A field that is one of several dataclasses is chosen by their field `kind`, whose default is its name.

    Args:
        table: A value from TOML or JSON.
        config: The dataclass.
        where: Key of the table, at the start of messages.
        owners: Returns the tables that an unknown key belongs to.

    Raises:
        StructureError: Naming the first key that is unknown, missing, of a wrong type or refused by its
            dataclass.
    """
    try:
        return _converter().structure(table, config)
    except BaseValidationError as error:
        mistakes = transform_error(error, where, partial(_describe, owners=owners))
        what, _, key = min(mistakes, key=lambda mistake: UNKNOWN not in mistake).rpartition(" @ ")
        key = re.sub(r"\['(.*?)'\]", _dotted, key)
    except TypeError as error:
        what, key = str(error), where
    raise StructureError(f"`{key}` {what}" if what.startswith("must be") else f"[{key}] {what}")


UNKNOWN = "unknown key"


def unknown_key(key: str, valid: Sequence[str], owners: Owners = lambda key: ()) -> str:
    """Return an unknown key, its tables and its nearest valid key; if it has neither, all valid keys."""
    plain = key.replace("-", "_")
    if plain in valid:
        return f"`{key}`; it is written `{plain}`."
    tables = owners(plain)
    like = get_close_matches(key, valid, n=1, cutoff=0.75 if tables else 0.6)
    place = f", which belongs to {' or '.join(tables)}" if tables else ""
    if like:
        return f"`{key}`{place}; `{like[0]}` may be meant."
    return f"`{key}`{place or '; the valid ones are ' + ', '.join(valid)}."


def _describe(error: BaseException, _: type | None, *, owners: Owners) -> str:
    if isinstance(error, KeyError):
        return "must be given, but is missing."
    if isinstance(error, ForbiddenExtraKeysError):
        valid = [field.name for field in fields(error.cl) if field.init]
        return f"holds an {UNKNOWN} {unknown_key(min(error.extra_fields), valid, owners)}"
    return str(error)


@cache
def _converter() -> Converter:
    converter = Converter()
    for target, (accepted, meaning) in SCALARS.items():
        hook = _checked(accepted, meaning, _scalar)
        converter.register_structure_hook(target, hook)
    converter.register_structure_hook_func(_is_literal, _literal)
    number_or_name = _checked((int, str), "an integer or a string", lambda value, _: value)
    converter.register_structure_hook_func(lambda target: target == int | str, number_or_name)
    converter.register_structure_hook_factory(_is_table_or_string, _table_or_string)
    converter.register_structure_hook_factory(is_dataclass, _dataclass)
    converter.register_structure_hook_factory(_is_choice_of_tables, _choice_of_tables)
    converter.register_structure_hook_factory(is_mapping, _mapping)
    converter.register_structure_hook_factory(_is_changes, _changes)
    converter.register_structure_hook_factory(_is_homogeneous_tuple, _tuple)
    return converter


def _checked(accepted: type | tuple[type, ...], meaning: str, hook: Hook) -> Hook:
    """Check the type before `hook`, which cattrs leaves out: it would read "abc" as ("a", "b", "c")."""

    def check(value: Any, target: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and accepted is not bool):
            raise TypeError(f"must be {meaning}, but is {_as_toml(value)}.")
        return hook(value, target)

    return check


def _dotted(key: re.Match[str]) -> str:
    """Return a key as TOML has it."""
    return f".{key[1]}" if re.fullmatch(r"[\w-]+", key[1]) else f'."{key[1]}"'


def _as_toml(value: Any) -> str:
    """Return a value as TOML has it, except in tables and arrays."""
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(value)
        if isinstance(value, date)
        else repr(value)
    )


def _scalar(value: Any, target: Any) -> Any:
    if target is int and not -(2**63) <= value < 2**63:  # TOML's integers
        raise ValueError(f"must be below 2^63, as TOML's integers are, but is {value}.")
    return target(value)


def _is_literal(target: Any) -> bool:
    return get_origin(target) is Literal


def _literal(value: Any, target: Any) -> Any:
    valid = get_args(target)
    if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in valid):
        names = ", ".join(str(one).lower() if isinstance(one, bool) else repr(one) for one in valid)
        raise ValueError(f"must be one of {names}, but is {value!r}.")
    return value


def _dataclass(target: Any, converter: Converter) -> Hook:
    hook = make_dict_structure_fn(target, converter, _cattrs_forbid_extra_keys=True)
    return _checked(Mapping, "a table", hook)


def _is_changes(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, Changes)


def _changes(target: type[Changes], converter: Converter) -> Hook:
    check = _dataclass(target.table(), converter)

    def structure_changes(value: Any, _: Any) -> Changes:
        check(value, None)
        return target(value)

    return structure_changes


def _is_choice_of_tables(target: Any) -> bool:
    return get_origin(target) in (Union, UnionType) and sum(map(is_dataclass, get_args(target))) > 1


def _choice_of_tables(target: Any, converter: Converter) -> Hook:
    """Structure one of several dataclasses, chosen by the key `kind`; the first by default."""
    tables: list[Any] = [table for table in get_args(target) if is_dataclass(table)]
    kinds = [table.kind for table in tables]

    def structure_choice(value: Any, _: Any) -> Any:
        kind = value.get("kind", kinds[0])
        if kind not in kinds:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, kinds))}, but is {kind!r}.")
        return converter.structure(value, tables[kinds.index(kind)])

    checked = _checked(Mapping, "a table", structure_choice)
    return lambda value, _: None if value is None and NoneType in get_args(target) else checked(value, target)


def _is_table_or_string(target: Any) -> bool:
    return bool(target == dict[str, float] | str)


def _table_or_string(target: Any, converter: Converter) -> Hook:
    table = mapping_structure_factory(get_args(target)[0], converter)
    hook = _checked((Mapping, str), "a table or a string", table)
    return lambda value, _: value if isinstance(value, str) else hook(value, _)


def _mapping(target: Any, converter: Converter) -> Hook:
    return _checked(Mapping, "a table", mapping_structure_factory(target, converter))


def _is_homogeneous_tuple(target: Any) -> bool:
    return get_origin(target) is tuple and get_args(target)[-1] is Ellipsis


def _tuple(target: Any, converter: Converter) -> Hook:
    return _checked(list, _array_of(target), homogenous_tuple_structure_factory(target, converter))


def _array_of(target: Any) -> str:
    """Describe an array; of tables, TOML has two notations, and `[name]` is one that users take for it."""
    return "an array of tables, `[[…]]`" if is_dataclass(get_args(target)[0]) else "an array"
