"""The end of a term: lost controllership, an unknown result of a write, or a defect.

Sources: C5, C6; ARCHITECTURE.md.
"""

import asyncio
import logging

import pytest

from controller_core.model.events import DeleteTopics, RepairPartitions
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


async def test_a_session_that_ends_during_an_event_ends_the_term(term: Term) -> None:
    """Requests may be done or not, and this process can no longer read: the next controller will."""
    await term.create("orders", (1, 2))
    request = isr_request(term, "orders-0", (1,))
    term.server.before_writes.append(term.session.expire)

    with pytest.raises(TermEndedError):
        await term.controller.submit(request)

    assert term.controller.has_ended
    row = term.cluster.row_of("orders", 0)
    assert row is not None
    assert term.cluster.columns.isr_of(row) == (1, 2)


async def test_a_read_that_fails_after_all_retries_ends_the_term(term: Term) -> None:
    """kafka_zookeeper.session repeats reads; after that the written state is unknown."""
    await term.create("orders", (1, 2))
    term.server.faults += [Fault.NOT_DONE, Fault.READ_LOST]

    with pytest.raises(TermEndedError, match="broke again"):
        await term.controller.submit(isr_request(term, "orders-0", (1,)))

    assert "broke again" in await term.controller.ended()


async def test_a_cancelled_caller_does_not_cancel_its_event(term: Term) -> None:
    """Between a write and its application nothing may stop: memory would differ from the znodes."""
    await term.create("orders", (1, 2))
    caller = asyncio.create_task(term.controller.submit(isr_request(term, "orders-0", (1,))))
    cancelled = asyncio.Event()
    term.server.before_writes.append(lambda: (caller.cancel(), cancelled.set()))
    await cancelled.wait()
    await settled()

    assert caller.cancelled()
    assert term.state("orders-0") == (1, 0, (1,))


async def test_callers_of_a_closed_term_get_an_error(term: Term) -> None:
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


async def test_a_defect_in_a_decision_ends_the_term_only(term: Term, caplog: pytest.LogCaptureFixture) -> None:
    """Invariants are checked in production; the next controller reads everything again (ADR 5)."""
    term.decide_with(failing_decisions(DeleteTopics))

    with pytest.raises(AssertionError, match="C2"):
        await term.controller.submit(DeleteTopics(("orders",)))

    assert "C2: an ISR outside its replicas" in await term.controller.ended()
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR] == [
        "Unexpected failure; ending the active term"
    ]


async def test_a_failure_of_the_first_event_ends_the_term_only(
    term: Term,
) -> None:
    """The process continues."""
    term.decide_with(failing_decisions(RepairPartitions))
    await term.controller.start(RepairPartitions())

    assert "C2" in await term.controller.ended()


async def test_a_broker_that_knows_a_newer_controller_ends_the_term(term: Term) -> None:
    """Protocol notes, Z3: a top-level STALE_CONTROLLER_EPOCH means that this controller is deposed."""
    term.channels.deposed()

    assert await term.controller.ended() == "a broker knows a newer controller"


async def test_only_the_first_reason_of_an_end_counts(term: Term) -> None:
    """The second one is ignored."""
    controller: Controller = term.controller
    controller.end("first")
    controller.end("second")

    assert await controller.ended() == "first"
