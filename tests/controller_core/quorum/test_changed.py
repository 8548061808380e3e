"""`changed` does what `dataclasses.replace` does."""

from dataclasses import replace

import pytest

from controller_core.quorum.changed import changed
from controller_core.quorum.log_view import LogView
from controller_core.quorum.node import StoredElection
from controller_core.quorum.voters import ReplicaKey, VoterSet


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (StoredElection(3, 1), {"epoch": 4, "voted": ReplicaKey(2)}),
        (LogView(), {"end_offset": 9}),
        (VoterSet(), {"voters": ()}),
        (LogView(end_offset=3), {}),
    ],
)
def test_a_copy_equals_that_of_dataclasses_replace(value: LogView, changes: dict[str, int]) -> None:
    """All fields are kept but those that change; the value itself stays as it is."""
    before = replace(value)

    assert changed(value, **changes) == replace(value, **changes)
    assert value == before


def test_a_field_that_the_class_lacks_is_an_error() -> None:
    """A misspelt field never changes nothing in silence."""
    with pytest.raises(TypeError, match="StoredElection has no field term"):
        changed(StoredElection(), term=3)  # type: ignore[call-arg]


def test_a_copy_is_frozen() -> None:
    """Only the copying itself writes to the slots."""
    with pytest.raises(AttributeError):
        changed(StoredElection(), epoch=2).epoch = 3
