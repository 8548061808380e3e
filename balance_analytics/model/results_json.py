"""Results as JSON, parsed strictly: a missing field or one of another type is an error that names it.

The same result gives the same bytes. Other values between the stages use the same functions (`moves_json`).
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from balance_analytics.model.results import RESULT_SCHEMA, Result

Value = TypeVar("Value")

MAX_RESULT_BYTES = 16_000_000
"""Sixteen times the largest result of a cluster with a thousand brokers, by the limits in `results`."""


class ResultError(ValueError):
    """The text is not a result or a proposal; the message names the wrong field."""


def to_json(result: Result) -> str:
    """Write a result as JSON."""
    return lines_of(asdict(result))


def from_json(text: str | bytes) -> Result:
    """Read a result; raises `ResultError`."""
    return read_value(Result, text, "result", RESULT_SCHEMA, MAX_RESULT_BYTES)


def lines_of(fields_by_name: Mapping[str, Any]) -> str:
    """Write an object as JSON, one line per field, so that files can be compared."""
    lines = (f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in fields_by_name.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_value(kind: type[Value], text: str | bytes, what: str, schema: int, max_bytes: int) -> Value:
    """Read an object of one schema as a dataclass; raises `ResultError`.

    Unknown fields are ignored: a newer version may have added them.
    """
    if len(text) > max_bytes:
        raise ResultError(f"the {what} has {len(text)} bytes, more than {max_bytes}")
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ResultError(f"the {what} is not JSON: {error}") from error
    except RecursionError as error:
        raise ResultError(f"the {what} is nested too deeply") from error
    found = body.get("schema") if isinstance(body, dict) else None
    if found != schema:
        raise ResultError(f"the {what} has schema {found}, this version reads {schema}")
    value: Value = value_of(kind, body, what)
    return value


def value_of(kind: Any, value: Any, where: str) -> Any:
    """Convert `value`, from JSON, to the type `kind`; raises `ResultError` with `where`."""
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise ResultError(f"{where} is not an object")
        hints = _hints(kind)
        lacking = [field.name for field in fields(kind) if field.name not in value]
        if lacking:
            raise ResultError(f"{where} lacks {', '.join(lacking)}")
        return kind(**{name: value_of(hint, value[name], f"{where}.{name}") for name, hint in hints.items()})
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ResultError(f"{where} is not a list")
        return tuple(value_of(get_args(kind)[0], item, f"{where}[{at}]") for at, item in enumerate(value))
    if get_origin(kind) in {Union, types.UnionType}:
        (inner,) = [argument for argument in get_args(kind) if argument is not type(None)]
        return None if value is None else value_of(inner, value, where)
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ResultError(f"{where} is {type(value).__name__}, not {kind.__name__}")
    return float(value) if kind is float else value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
