"""Optimistic updates: retried while other processes write, a bounded number of times."""

from collections.abc import Sequence

import pytest

from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS, Attempt, optimistic_update
from kafka_zookeeper.writes import Committed, Delete, MultiResult, Operation, Refused, RefusedReason, Unknown

CONFLICT = Refused(0, RefusedReason.BAD_VERSION)
FINAL = Refused(0, RefusedReason.NO_AUTH)


class Session:
    """Ends transactions as configured; the last ending is repeated."""

    def __init__(self, *endings: MultiResult) -> None:
        self.endings = list(endings)
        self.transactions = 0

    async def multi(self, _operations: Sequence[Operation]) -> MultiResult:
        """Count it."""
        self.transactions += 1
        return self.endings.pop(0) if len(self.endings) > 1 else self.endings[0]


async def update(session: Session, *operations: Operation) -> tuple[int, MultiResult]:
    """Update something; the result numbers the attempt."""
    attempts = 0

    async def attempt() -> Attempt[int]:
        nonlocal attempts
        attempts += 1
        return Attempt(operations, attempts)

    async def is_retried(ended: MultiResult) -> bool:
        return ended == CONFLICT

    return await optimistic_update(session, attempt, is_retried)


WRITE = Delete("/a", 0)


async def test_an_update_that_conflicts_is_computed_again() -> None:
    """From the data that the other process wrote."""
    session = Session(CONFLICT, CONFLICT, Committed((None,)))
    assert await update(session, WRITE) == (3, Committed((None,)))


@pytest.mark.parametrize("ending", [FINAL, Unknown()])
async def test_an_ending_that_is_not_retried_is_returned(ending: MultiResult) -> None:
    """The caller converts it to an answer."""
    session = Session(ending)
    assert await update(session, WRITE) == (1, ending)
    assert session.transactions == 1


async def test_nothing_to_write_is_no_transaction() -> None:
    """The state is as wanted already, or the update is refused."""
    session = Session(FINAL)
    assert await update(session) == (1, Committed(()))
    assert session.transactions == 0


async def test_conflicts_are_retried_a_bounded_number_of_times() -> None:
    """AclAuthorizer.maxUpdateRetries."""
    session = Session(CONFLICT)
    assert await update(session, WRITE) == (MAX_ATTEMPTS, CONFLICT)
    assert session.transactions == MAX_ATTEMPTS
