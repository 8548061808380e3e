"""Copies of frozen values with some fields changed; faster than with `dataclasses.replace`.

A step of the node makes about five such copies, of up to twelve fields each. `dataclasses.replace` looks up and checks every field and
calls `__init__`; this copies the slots. It is for the quorum's values only: frozen dataclasses with slots, all fields in `__init__`, and
nothing to check in `__post_init__`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["changed"]

if TYPE_CHECKING:
    from dataclasses import replace as changed  # The type checker knows the fields that it may change.
else:
    Value = TypeVar("Value")

    def changed(value: Value, **changes: object) -> Value:
        """Return a copy with other values of some fields; a field that the class lacks is a TypeError."""
        return _copier(type(value))(value, changes)


@cache
def _copier(cls: type) -> Callable[[Any, Mapping[str, object]], Any]:
    """Return a function that copies all slots of a value, and then writes the changes.

    A slot's own `__set__` does not know that the class is frozen. The copy is generated code, as that of `dataclasses`: twice as fast as
    a loop over the fields.
    """
    names = [field.name for field in fields(cls)]
    writers = {name: cls.__dict__[name].__set__ for name in names}
    lines = [
        "def copy(value, changes):",
        " new = make(cls)",
        *(f" write_{name}(new, value.{name})" for name in names),
        " for name, part in changes.items():",
        "  if name not in writers:",
        "   raise TypeError(f'{cls.__name__} has no field {name}')",
        "  writers[name](new, part)",
        " return new",
    ]
    scope: dict[str, Any] = {"make": object.__new__, "cls": cls, "writers": writers}
    scope.update({f"write_{name}": write for name, write in writers.items()})
    exec("\n".join(lines), scope)  # noqa: S102 - the names are those of the class's own fields
    copier: Callable[[Any, Mapping[str, object]], Any] = scope["copy"]
    return copier
