"""Option groups: typer sees one parameter per option, the command receives dataclasses."""

import inspect
from dataclasses import dataclass

import pytest

from steward.options.groups import in_groups


@dataclass(frozen=True)
class Address:
    """An option group."""

    host: str
    port: int = 9092


@in_groups
def connect(address: Address, *, timeout_ms: int = 100) -> None:
    """Raise the arguments."""
    raise LookupError(address, timeout_ms)


def test_signature_has_one_parameter_per_option() -> None:
    """The options are read from it."""
    assert str(inspect.signature(connect)) == "(*, host: str, port: int = 9092, timeout_ms: int = 100)"
    assert connect.__annotations__ == {"host": str, "port": int, "timeout_ms": int}
    assert connect.__doc__ == "Raise the arguments."


def test_command_receives_its_groups() -> None:
    """With their defaults for options that are not given."""
    with pytest.raises(LookupError) as raised:
        connect(host="a", timeout_ms=7)

    assert raised.value.args == (Address("a"), 7)


def test_unknown_option_is_rejected() -> None:
    """TypeError, with its name."""
    with pytest.raises(TypeError, match="rack"):
        connect(host="a", rack="b")
