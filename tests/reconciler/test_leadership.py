"""Holder and standbys of a Lease, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.decide.lease import LEASE_DURATION_S, RENEW_DEADLINE_S, RETRY_PERIOD_S
from reconciler.engine.leadership import Leadership, LeaseLostError
from reconciler.kube.port import UnavailableError
from reconciler.metrics import Metrics
from reconciler.resources.lease import Lease
from tests.reconciler.fake_kube import START
from tests.reconciler.fake_leases import FakeLeases
from tests.reconciler.virtual_time import in_virtual_time

TAKEOVER_S = 15.0
"""A standby takes over within 15 s."""


def process(
    leases: FakeLeases, identity: str, names: Sequence[str] = ("operator",), create_after_s: float = 0.0
) -> Leadership:
    """Leadership of one process."""
    clock = asyncio.get_running_loop().time
    return Leadership(
        leases,
        names,
        identity,
        now=lambda: START + timedelta(seconds=clock()),
        clock=clock,
        metrics=Metrics(),
        create_after_s=create_after_s,
    )


def kill(leader: Leadership) -> None:
    """Stop its renewals without a release."""
    assert leader._keeping is not None
    leader._keeping.cancel()


@in_virtual_time
async def test_a_lease_that_helm_creates_is_acquired_and_one_that_nothing_creates_is_created_later() -> None:
    """Helm creates the Lease after the Deployment; a Lease that was deleted stays missing."""
    clock = asyncio.get_running_loop().time
    leases = FakeLeases()
    first = process(leases, "a", create_after_s=60)
    waiting = asyncio.create_task(first.acquire())
    await asyncio.sleep(5)
    assert leases.writes == []

    leases.edit(Lease("operator", ""))
    await asyncio.wait_for(waiting, 1)
    kill(first)

    second = process(FakeLeases(), "b", create_after_s=60)
    began_s = clock()
    await second.acquire()
    assert 60 <= clock() - began_s < 61
    kill(second)


@pytest.mark.shows("O10")
@in_virtual_time
async def test_one_process_is_active_and_the_others_are_standbys() -> None:
    """O10: a standby names the holder. Only the holder writes to the Lease, every two seconds."""
    leases = FakeLeases()
    first, second = process(leases, "a"), process(leases, "b")
    assert await first.acquire() == 0
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(100)

    assert first.is_active
    assert first.standby_reason is None
    assert not second.is_active
    assert not waiting.done()
    assert second.standby_reason == "standby; operator is held by a"
    assert {holder for _, holder in leases.writes} == {"a"}
    assert len(leases.writes) <= 100 / RETRY_PERIOD_S + 1
    waiting.cancel()
    await first.release()


@in_virtual_time
async def test_a_standby_takes_over_from_a_killed_holder_within_fifteen_seconds() -> None:
    """At any time between two renewals."""
    for alive_s in (1.0, 2.001, 2.9, 3.999, 5.5):
        leases = FakeLeases()
        first, second = process(leases, "a"), process(leases, "b")
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(alive_s)
        kill(first)
        async with asyncio.timeout(TAKEOVER_S - 2):  # the other two seconds are for its first list
            await waiting
        assert (leases.held["operator"].holder, leases.held["operator"].transitions) == ("b", 1)
        await second.release()


@in_virtual_time
async def test_a_standby_takes_over_at_once_after_a_graceful_stop() -> None:
    """SIGTERM: the Lease is released, and the standby's next poll acquires it."""
    leases = FakeLeases()
    first, second = process(leases, "a"), process(leases, "b")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(5)
    await first.release()

    assert leases.held["operator"].holder == ""
    async with asyncio.timeout(RETRY_PERIOD_S + 0.1):
        await waiting
    await second.release()


@in_virtual_time
async def test_a_restarted_container_of_the_same_pod_is_active_at_once() -> None:
    """Its identity is the pod's name."""
    leases = FakeLeases()
    first = process(leases, "pod")
    await first.acquire()
    kill(first)

    async with asyncio.timeout(0.1):
        await process(leases, "pod").acquire()


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_a_holder_that_cannot_renew_stops_before_another_process_may_acquire_the_lease(how: str) -> None:
    """The API server is unavailable, or hangs; the error states that the Lease was not renewed."""

    @in_virtual_time
    async def story() -> None:
        leases = FakeLeases()
        holder = process(leases, "a")
        await holder.acquire()
        await asyncio.sleep(5)
        leases.hangs, leases.failure = how == "hangs", UnavailableError("503") if how == "fails" else None
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(LeaseLostError, match="was not renewed"):
            await holder.lost()
        assert asyncio.get_running_loop().time() - began_s < LEASE_DURATION_S - 0.5
        assert not holder.is_active
        assert holder.shard is None

    story()


@in_virtual_time
async def test_a_holder_survives_a_short_outage() -> None:
    """The Lease is renewed before the deadline, also after a lost response and after another client has edited or deleted it."""
    leases = FakeLeases()
    holder = process(leases, "a")
    await holder.acquire()
    await asyncio.sleep(3)
    leases.failure = UnavailableError("503")
    await asyncio.sleep(RENEW_DEADLINE_S - RETRY_PERIOD_S - 1)
    leases.failure = None
    await asyncio.sleep(10)
    assert holder.is_active
    leases.lose_answers = 1
    await asyncio.sleep(10)
    assert holder.is_active
    leases.edit(replace(leases.held["operator"], transitions=9))
    await asyncio.sleep(10)
    assert holder.is_active
    del leases.held["operator"]
    await asyncio.sleep(10)
    assert holder.is_active
    assert leases.held["operator"].holder == "a"
    await holder.release()


@in_virtual_time
async def test_a_holder_whose_lease_another_process_has_acquired_ends() -> None:
    """As after a pause of the process. The fence blocks its calls from then on."""
    leases = FakeLeases()
    holder = process(leases, "a")
    await holder.acquire()
    leases.edit(replace(leases.held["operator"], holder="b"))
    with pytest.raises(LeaseLostError, match="operator is held by b"):
        await holder.lost()
    assert not holder.is_active
    await holder.release()
    assert leases.held["operator"].holder == "b"


@in_virtual_time
async def test_every_shard_has_one_process_and_a_spare_can_take_any() -> None:
    """Three Leases and four processes: one is the standby for all three."""
    leases = FakeLeases()
    names = ("x-0", "x-1", "x-2")
    processes = [process(leases, identity, names) for identity in "abcd"]
    tasks = [asyncio.create_task(item.acquire()) for item in processes]
    await asyncio.sleep(5)

    working = [item for item in processes if item.is_active]
    assert sorted(item.shard for item in working if item.shard is not None) == [0, 1, 2]
    (spare,) = (item for item in processes if not item.is_active)
    victim = working[1]
    shard = victim.shard
    kill(victim)
    async with asyncio.timeout(TAKEOVER_S):
        assert shard == await tasks[processes.index(spare)]
    for item in processes:
        await item.release()


@in_virtual_time
async def test_the_metric_is_1_only_while_the_lease_is_held() -> None:
    """`steward_lease_held` is 0 before the Lease is acquired and after its release."""
    leases = FakeLeases()
    holder = process(leases, "a")

    def shown() -> float | None:
        return holder._metrics.registry.get_sample_value("steward_lease_held", {"lease": "operator"})

    assert shown() == 0
    await holder.acquire()
    assert shown() == 1
    await holder.release()
    assert shown() == 0
