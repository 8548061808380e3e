"""How a tenure ends: another holds the cluster, nobody knows what is written, or a decision is wrong.

Sources: C5, C6; ARCHITECTURE.md (how a tenure lives).
"""

import asyncio
import logging

import pytest

from controller_core.model.events import (
    DeleteTopics,
    RepairPartitions,
)
from controller_core.shell.active import TermEndedError
from controller_core.shell.controller import Controller
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import Term, failing_decisions, isr_request, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault


@pytest.mark.shows("C5", "C6")
async def test_when_the_fence_does_not_hold_nothing_is_written_and_the_term_ends(term: Term) -> None:
    """C5, C6: another controller has raised the epoch."""
    await term.create("orders", (1, 2))
    before = term.server.at(paths.partition_state("orders", 0)).data
    term.server.put(paths.CONTROLLER_EPOCH, b"10")

    with pytest.raises(TermEndedError):
        await term.controller.submit(isr_request(term, "orders-0", (1,)))

    assert "another controller" in await term.controller.ended()
    assert before == term.server.at(paths.partition_state("orders", 0)).data
    with pytest.raises(TermEndedError):
        await term.controller.submit(RepairPartitions())


async def test_a_session_that_ends_in_the_middle_of_an_event_ends_the_tenure(term: Term) -> None:
    """What was sent may be done or not, and nobody may look any more: the next controller will."""
    await term.create("orders", (1, 2))
    wish = isr_request(term, "orders-0", (1,))
    term.server.before_writes.append(term.session.expire)

    with pytest.raises(TermEndedError):
        await term.controller.submit(wish)

    assert term.controller.has_ended
    row = term.cluster.row_of("orders", 0)
    assert row is not None
    assert term.cluster.columns.isr_of(row) == (1, 2)


async def test_reads_that_are_given_up_end_the_tenure(term: Term) -> None:
    """Kafka_zookeeper.session: a read is repeated by itself; when that is given up, nobody knows what is written."""
    await term.create("orders", (1, 2))
    term.server.faults += [Fault.NOT_DONE, Fault.READ_LOST]

    with pytest.raises(TermEndedError, match="broke again"):
        await term.controller.submit(isr_request(term, "orders-0", (1,)))

    assert "broke again" in await term.controller.ended()


async def test_a_caller_that_hangs_up_leaves_the_event_to_its_end(term: Term) -> None:
    """Between a write and its application nothing may stop: memory would differ from what is written."""
    await term.create("orders", (1, 2))
    caller = asyncio.create_task(term.controller.submit(isr_request(term, "orders-0", (1,))))
    hung_up = asyncio.Event()
    term.server.before_writes.append(lambda: (caller.cancel(), hung_up.set()))
    await hung_up.wait()
    await settled()

    assert caller.cancelled()
    assert term.state("orders-0") == (1, 0, (1,))


async def test_callers_of_a_tenure_that_is_closed_are_told_so(term: Term) -> None:
    """Their own tasks were not cancelled: a CancelledError would close their clients' connections."""
    await term.create("orders", (1, 2))
    writing = asyncio.Event()
    term.server.before_writes.append(writing.set)
    running = asyncio.create_task(term.controller.submit(isr_request(term, "orders-0", (1,))))
    waiting = asyncio.create_task(term.controller.submit(RepairPartitions()))
    await writing.wait()

    await term.controller.close()

    for caller in (running, waiting):
        with pytest.raises(TermEndedError):
            await caller
    assert term.channels.closed


async def test_a_defect_in_a_decision_ends_the_tenure_and_nothing_else(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """Invariants are checked in production; the next controller reads everything again (ADR 5)."""
    term.decide_with(failing_decisions(DeleteTopics))

    with pytest.raises(AssertionError, match="C2"):
        await term.controller.submit(DeleteTopics(("orders",)))

    assert "C2: an ISR outside its replicas" in await term.controller.ended()
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR] == [
        "Unexpected failure; ending the active term"
    ]


async def test_the_first_event_of_a_tenure_may_fail_without_taking_the_process_with_it(
    term: Term,
) -> None:
    """The tenure has ended then, and says why."""
    term.decide_with(failing_decisions(RepairPartitions))
    await term.controller.start(RepairPartitions())

    assert "C2" in await term.controller.ended()


async def test_a_broker_that_knows_a_newer_controller_ends_the_tenure(term: Term) -> None:
    """Protocol notes, Z3: a top-level STALE_CONTROLLER_EPOCH means that we are deposed."""
    term.channels.deposed()

    assert await term.controller.ended() == "a broker knows a newer controller"


async def test_an_end_is_told_once(term: Term) -> None:
    """The first reason is the reason."""
    controller: Controller = term.controller
    controller.end("first")
    controller.end("second")

    assert await controller.ended() == "first"
