"""Late answers of brokers, decoded from the bodies of request and response."""

from collections.abc import AsyncIterator

import pytest

from controller_core.model import MoveStage
from controller_core.model.decision import SendStopReplica
from controller_core.model.events import AlterReassignments
from controller_core.model.zookeeper_events import StopReplicaAnswered
from controller_core.shell.brokers.answers import interpret_answer
from controller_core.shell.brokers.requests import stop_replica
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.terms import Term, isr_request, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

TAKEN: Body = {"error_code": ErrorCode.NONE, "partition_errors": []}


async def move_away_and_back(term: Term) -> Body:
    """Move orders-0 from 1 to 4, start to add 1 again, cancel that; returns the first StopReplica, unanswered."""
    partition = tp("orders-0")
    await term.create("orders", (1, 2, 3))
    await term.controller.submit(AlterReassignments({partition: (2, 3, 4)}))
    await term.controller.submit(isr_request(term, "orders-0", (1, 2, 3, 4)))
    await settled()
    (first,) = [send for send in term.channels.sent if isinstance(send, SendStopReplica) and send.delete]
    body = stop_replica(term.cluster, first)
    term.channels.sent.clear()
    await term.controller.submit(AlterReassignments({partition: (2, 3, 1)}))
    await term.controller.submit(AlterReassignments({partition: None}))
    await settled()
    return body


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """Four brokers."""
    term = Term(monkeypatch, 1, 2, 3, 4)
    yield term
    await term.controller.close()


@pytest.mark.shows("C9")
async def test_an_answer_to_an_earlier_request_does_not_end_a_later_move(term: Term) -> None:
    """C9: broker 1 has fetched again since. If its answer counted for the last request, a stray log would stay."""
    first = await move_away_and_back(term)
    (last,) = [send for send in term.channels.sent if isinstance(send, SendStopReplica) and send.delete]
    row = term.cluster.row_of(*tp("orders-0"))
    assert row is not None

    term.channels.answered(_answer(first))
    await settled()

    assert (term.cluster.moves[row].stage, term.cluster.moves[row].waiting) == (MoveStage.REMOVING, (1,))

    term.channels.answered(_answer(stop_replica(term.cluster, last)))
    await settled()

    assert term.cluster.moves == {}
    assert term.cluster.stray_replicas == {}


def _answer(request: Body) -> StopReplicaAnswered:
    event = interpret_answer(1, ApiKey.STOP_REPLICA, request, TAKEN).event
    assert event is not None
    return event
