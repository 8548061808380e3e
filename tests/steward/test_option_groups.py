"""Options in groups: typer sees one parameter an option, the command its groups."""

import doctest
import inspect
from dataclasses import dataclass

import pytest

from steward.options import groups
from steward.options.groups import in_groups


@dataclass(frozen=True)
class Place:
    """Where something is."""

    host: str
    port: int = 9092


@in_groups
def connect(place: Place, *, timeout_ms: int = 100) -> None:
    """Say what was given."""
    raise LookupError(place, timeout_ms)


def test_a_commands_signature_names_its_options() -> None:
    """A command that takes forty options fits a screen."""
    assert str(inspect.signature(connect)) == "(*, host: str, port: int = 9092, timeout_ms: int = 100)"
    assert connect.__annotations__ == {"host": str, "port": int, "timeout_ms": int}
    assert connect.__doc__ == "Say what was given."


def test_a_command_is_given_its_groups() -> None:
    """With their own defaults where an option is not given."""
    with pytest.raises(LookupError) as told:
        connect(host="a", timeout_ms=7)

    assert told.value.args == (Place("a"), 7)


def test_an_option_of_no_group_is_refused_as_by_any_function() -> None:
    """TypeError, with its name."""
    with pytest.raises(TypeError, match="rack"):
        connect(host="a", rack="b")


def test_what_the_docstrings_show_is_so() -> None:
    """CONTRIBUTING: examples are run."""
    assert doctest.testmod(groups).failed == 0
