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
from controller_core.shell import controller as controller_module
from controller_core.shell.active import TenureLostError
from controller_core.shell.controller import Controller
from kafka_zookeeper import paths
from tests.controller_core.shell.tenures import Tenure, failing_decisions, isr_wish, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault


@pytest.mark.shows("C5", "C6")
async def test_when_the_fence_does_not_hold_nothing_is_written_and_the_tenure_is_over(tenure: Tenure) -> None:
    """C5, C6: another controller has raised the epoch."""
    await tenure.create("orders", (1, 2))
    before = tenure.server.at(paths.partition_state("orders", 0)).data
    tenure.server.put(paths.CONTROLLER_EPOCH, b"10")

    with pytest.raises(TenureLostError):
        await tenure.controller.submit(isr_wish(tenure, "orders-0", (1,)))

    assert "another controller" in await tenure.controller.ended()
    assert before == tenure.server.at(paths.partition_state("orders", 0)).data
    with pytest.raises(TenureLostError):
        await tenure.controller.submit(RepairPartitions())


async def test_a_session_that_ends_in_the_middle_of_an_event_ends_the_tenure(tenure: Tenure) -> None:
    """What was sent may be done or not, and nobody may look any more: the next controller will."""
    await tenure.create("orders", (1, 2))
    wish = isr_wish(tenure, "orders-0", (1,))
    tenure.server.before_writes.append(tenure.session.expire)

    with pytest.raises(TenureLostError):
        await tenure.controller.submit(wish)

    assert tenure.controller.has_ended
    row = tenure.cluster.row_of("orders", 0)
    assert row is not None
    assert tenure.cluster.columns.isr_of(row) == (1, 2)


async def test_reads_that_are_given_up_end_the_tenure(tenure: Tenure) -> None:
    """Kafka_zookeeper.session: a read is repeated by itself; when that is given up, nobody knows what is written."""
    await tenure.create("orders", (1, 2))
    tenure.server.faults += [Fault.NOT_DONE, Fault.READ_LOST]

    with pytest.raises(TenureLostError, match="broke again"):
        await tenure.controller.submit(isr_wish(tenure, "orders-0", (1,)))

    assert "broke again" in await tenure.controller.ended()


async def test_a_caller_that_hangs_up_leaves_the_event_to_its_end(tenure: Tenure) -> None:
    """Between a write and its application nothing may stop: memory would differ from what is written."""
    await tenure.create("orders", (1, 2))
    caller = asyncio.create_task(tenure.controller.submit(isr_wish(tenure, "orders-0", (1,))))
    hung_up = asyncio.Event()
    tenure.server.before_writes.append(lambda: (caller.cancel(), hung_up.set()))
    await hung_up.wait()
    await settled()

    assert caller.cancelled()
    assert tenure.state("orders-0") == (1, 0, (1,))


async def test_callers_of_a_tenure_that_is_closed_are_told_so(tenure: Tenure) -> None:
    """Their own tasks were not cancelled: a CancelledError would close their clients' connections."""
    await tenure.create("orders", (1, 2))
    writing = asyncio.Event()
    tenure.server.before_writes.append(writing.set)
    running = asyncio.create_task(tenure.controller.submit(isr_wish(tenure, "orders-0", (1,))))
    waiting = asyncio.create_task(tenure.controller.submit(RepairPartitions()))
    await writing.wait()

    await tenure.controller.close()

    for caller in (running, waiting):
        with pytest.raises(TenureLostError):
            await caller
    assert tenure.channels.closed


async def test_a_defect_in_a_decision_ends_the_tenure_and_nothing_else(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Invariants are checked in production; the next controller reads everything again (ADR 5)."""
    monkeypatch.setattr(controller_module, "decide", failing_decisions(DeleteTopics))

    with pytest.raises(AssertionError, match="C2"):
        await tenure.controller.submit(DeleteTopics(("orders",)))

    assert "C2: an ISR outside its replicas" in await tenure.controller.ended()
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR] == ["unexpected failure"]


async def test_the_first_event_of_a_tenure_may_fail_without_taking_the_process_with_it(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tenure has ended then, and says why."""
    monkeypatch.setattr(controller_module, "decide", failing_decisions(RepairPartitions))
    await tenure.controller.start(RepairPartitions())

    assert "C2" in await tenure.controller.ended()


async def test_a_broker_that_knows_a_newer_controller_ends_the_tenure(tenure: Tenure) -> None:
    """Protocol notes, Z3: a top-level STALE_CONTROLLER_EPOCH means that we are deposed."""
    tenure.channels.deposed()

    assert await tenure.controller.ended() == "a broker knows a newer controller"


async def test_an_end_is_told_once(tenure: Tenure) -> None:
    """The first reason is the reason."""
    controller: Controller = tenure.controller
    controller.end("first")
    controller.end("second")

    assert await controller.ended() == "first"
