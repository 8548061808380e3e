"""Periodic tasks of an active controller of KRaft mode. Source: BrokerHeartbeatManager, QuorumController's periodic tasks."""

import asyncio
from dataclasses import replace

import pytest

from controller_core.shell.active import OverloadedError
from controller_core.shell.kraft import active_term
from controller_core.shell.kraft.upkeep import Upkeep
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import NoOpRecord
from tests.controller_core.shell.kraft.memory_quorum import SETTINGS, Member, SharedLog, new_topic
from tests.waiting import until

NO_OP = encode_record(NoOpRecord(), 30)
SESSION_MS = SETTINGS.broker_session_timeout_ms


@pytest.fixture
async def active(active: Member) -> Member:
    """The active controller of a cluster with two brokers and a topic that the first one leads."""
    await active.start_broker(1)
    await active.start_broker(2)
    await active.controller.submit(new_topic("orders", (1, 2)))
    return active


def hear(member: Member, broker: int) -> None:
    """Note a heartbeat."""
    member.controller.sessions.hear(broker, member.controller.cluster.brokers[broker].epoch, member.now_ms)


@pytest.mark.shows("F65")
async def test_a_broker_whose_session_ends_is_fenced_and_the_others_stay(log: SharedLog, active: Member) -> None:
    """C17: leaders move in the same decision."""
    upkeep = Upkeep(active.controller, SETTINGS, 0)
    for broker in (1, 2):
        hear(active, broker)
    log.now_ms += SESSION_MS
    hear(active, 2)
    log.now_ms += 1
    await upkeep.fence_expired(due_ms=log.now_ms)

    assert active.controller.cluster.fenced == {1}
    assert int(active.controller.cluster.columns.leader[0]) == 2


async def test_a_broker_is_fenced_however_many_requests_wait(
    log: SharedLog, active: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session is gone from the table after one attempt; requests get a retriable error (REQUEST_TIMED_OUT)."""
    hear(active, 1)
    monkeypatch.setattr(active_term, "MAX_WAITING", 0)
    log.now_ms += SESSION_MS + 1
    await Upkeep(active.controller, SETTINGS, 0).fence_expired(due_ms=log.now_ms)

    assert active.controller.cluster.fenced == {1}
    with pytest.raises(OverloadedError):
        await active.controller.submit(new_topic("refused", (2,)))


async def test_a_check_of_sessions_that_comes_late_fences_no_broker(log: SharedLog, active: Member) -> None:
    """A controller that was paused first reads the heartbeats that wait in its sockets."""
    upkeep = Upkeep(active.controller, SETTINGS, 0)
    due_ms = log.now_ms
    log.now_ms += 10 * SESSION_MS
    await upkeep.fence_expired(due_ms)

    assert active.controller.cluster.fenced == set()

    for broker in (1, 2):
        hear(active, broker)
    await upkeep.fence_expired(due_ms=log.now_ms)
    assert active.controller.cluster.fenced == set()


async def test_the_tasks_of_a_term_fence_and_write_and_end_with_it(log: SharedLog) -> None:
    """metadata.max.idle.interval.ms; a standby fences no broker."""
    member = log.add(101)
    Upkeep(member.controller, replace(SETTINGS, disconnected_session_timeout_ms=80), max_idle_interval_ms=5)
    log.elect(101)
    await member.start_broker(1)
    hear(member, 1)
    await until(lambda: any(NO_OP in batch.data for batch in log.batches))
    log.now_ms += SESSION_MS + 1
    await until(lambda: member.controller.cluster.fenced == {1})
    running = [task for task in asyncio.all_tasks() if task.get_name() in {"sessions", "idle interval"}]
    log.elect(None)
    await asyncio.gather(*running, return_exceptions=True)

    assert [task.cancelled() for task in running] == [True, True]


async def test_a_defect_in_a_task_ends_the_node(log: SharedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that fences no brokers must not go on."""

    async def broken(_due_ms: int) -> None:
        raise ZeroDivisionError("a defect")

    member = log.add(101)
    upkeep = Upkeep(member.controller, replace(SETTINGS, disconnected_session_timeout_ms=8), max_idle_interval_ms=0)
    monkeypatch.setattr(upkeep, "fence_expired", broken)
    log.elect(101)
    await until(lambda: member.failure is not None)

    assert isinstance(member.failure, ZeroDivisionError)
    upkeep.end()
