"""Option groups: a parameter of a command whose type is a dataclass represents all fields of that dataclass.

typer reads the options of a command from its signature, one parameter each. The decorator gives the command a signature with
one parameter for each field, and calls it with the dataclasses. Field names are option names, so no two groups of a command
may share a field name.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace parameters that are dataclasses by one parameter for each of their fields.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Place:
    ...     host: str
    ...     port: int = 9092
    >>> @in_groups
    ... def connect(place: Place, timeout_ms: int = 100) -> None:
    ...     print(place, timeout_ms)
    >>> inspect.signature(connect)
    <Signature (*, host: str, port: int = 9092, timeout_ms: int = 100)>
    >>> connect(host="a", port=1)
    Place(host='a', port=1) 100
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def run(**given: Any) -> None:
        values = {name: group(**_pop_fields(given, group)) for name, group in groups.items()}
        command(**given, **values)

    # inspect.signature must find the new signature, not that of the wrapped command.
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in inspect.signature(group).parameters.items()
    ]


def _pop_fields(given: dict[str, Any], group: Any) -> dict[str, Any]:
    return {field.name: given.pop(field.name) for field in fields(group) if field.name in given}
