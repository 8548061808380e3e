"""Copies of frozen values with some fields changed; faster than with `dataclasses.replace`.

A step of the node makes about five such copies, of up to twelve fields each. `dataclasses.replace` looks up and checks every field and
calls `__init__`; this copies the slots. It is for the quorum's values only: frozen dataclasses with slots, all fields in `__init__`, and
nothing to check in `__post_init__`.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["changed"]

if TYPE_CHECKING:
    from dataclasses import replace as changed  # The type checker knows the fields that it may change.
else:
    Value = TypeVar("Value")

    def changed(value: Value, **changes: object) -> Value:
        """Return a copy with other values of some fields; a field that the class lacks is a TypeError."""
        cls = type(value)
        read_all, writers = _slots(cls)
        copy = object.__new__(cls)
        for write, part in zip(writers.values(), read_all(value), strict=True):
            write(copy, part)
        for name, part in changes.items():
            if name not in writers:
                raise TypeError(f"{cls.__name__} has no field {name}")
            writers[name](copy, part)
        return copy


@cache
def _slots(cls: type) -> tuple[Callable[[Any], Iterable[object]], dict[str, Callable[[Any, object], None]]]:
    """Return a function that reads all fields, and one that writes each: a slot's own, which does not know that the class is frozen."""
    names = [field.name for field in fields(cls)]
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda value: (read(value),), {
        name: cls.__dict__[name].__set__ for name in names
    }
