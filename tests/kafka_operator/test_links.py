"""Connections to Kafka clusters."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from kafka_operator.admin.port import (
    AdminError,
    CallRefusedError,
    ClusterUnreachableError,
    ControllerUnavailableError,
)
from kafka_operator.decide.observed import ClusterSeen, Failure
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.links import SHUT_CAP_S, AwayError, Links
from kafka_operator.names import ClusterRef
from kafka_operator.resources.cluster import read_cluster
from tests.kafka_operator.makers import cluster, raw_cluster

MAIN = ClusterRef("shop", "main")


class FakeAdmin:
    """Answers, or fails as told."""

    def __init__(self, servers: Sequence[str]) -> None:
        self.servers = tuple(servers)
        self.calls = 0
        self.failure: AdminError | None = None
        self.closed = False

    async def describe_cluster(self) -> ClusterSeen:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        return ClusterSeen("abc", 1, (1,))

    async def close(self) -> None:
        self.closed = True


class Place:
    """Links over fakes, and a clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.cache = Cache()
        self.admins: list[FakeAdmin] = []
        self.links = Links(self.cache, self._connect, lambda: self.now_s, random.Random(1))  # type: ignore[arg-type]

    def _connect(self, servers: Sequence[str]) -> FakeAdmin:
        self.admins.append(FakeAdmin(servers))
        return self.admins[-1]

    async def look(self) -> ClusterSeen:
        return await self.links.use(MAIN, lambda admin: admin.describe_cluster())

    async def reason(self) -> tuple[str, bool]:
        with pytest.raises(AwayError) as caught:
            await self.look()
        return caught.value.away.reason, caught.value.away.definite


async def test_a_missing_cluster_is_said() -> None:
    """ClusterNotFound."""
    assert ("ClusterNotFound", True) == await Place().reason()


async def test_one_connection_serves_all_calls() -> None:
    """Opened at the first one."""
    place = Place()
    place.cache.learn(cluster())

    for _ in range(5):
        await place.look()

    assert [5] == [admin.calls for admin in place.admins]


async def test_a_dead_cluster_costs_one_attempt_for_all() -> None:
    """A thousand Topics do not knock a thousand times; the words name no passing detail."""
    place = Place()
    place.cache.learn(cluster())
    await place.look()
    (admin,) = place.admins
    admin.failure = ClusterUnreachableError("connection refused by broker 7")
    for _ in range(100):
        assert ("ClusterUnreachable", True) == await place.reason()
    assert 2 == admin.calls
    place.now_s += 1
    await place.reason()
    assert 3 == admin.calls
    admin.failure = None
    place.now_s += 2 * SHUT_CAP_S
    assert ClusterSeen("abc", 1, (1,)) == await place.look()
    assert ClusterSeen("abc", 1, (1,)) == await place.look()


async def test_a_missing_controller_is_a_passing_trouble() -> None:
    """A failover; the link stays open."""
    place = Place()
    place.cache.learn(cluster())
    await place.look()
    place.admins[0].failure = ControllerUnavailableError("connection refused")

    assert ("ControllerUnavailable", False) == await place.reason()
    assert ("ControllerUnavailable", False) == await place.reason()
    assert 3 == place.admins[0].calls


async def test_a_refused_call_keeps_the_brokers_words() -> None:
    """CLUSTER_AUTHORIZATION_FAILED."""
    place = Place()
    place.cache.learn(cluster())
    await place.look()
    place.admins[0].failure = CallRefusedError(Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Not allowed."))

    with pytest.raises(AwayError) as caught:
        await place.look()

    assert ("NotAuthorized", "Not allowed.") == (caught.value.away.reason, caught.value.away.message)


async def test_a_changed_address_makes_a_new_connection_and_closes_the_old_one() -> None:
    """No restart is needed."""
    place = Place()
    place.cache.learn(cluster())
    await place.look()
    raw = raw_cluster("main", "new:9092")
    raw["metadata"] |= {"uid": "uid-c", "resourceVersion": "99", "creationTimestamp": "2026-01-01T00:00:00Z"}
    place.cache.learn(read_cluster(raw))
    await place.look()

    assert [True, False] == [admin.closed for admin in place.admins]
    assert ("new:9092",) == place.admins[1].servers
    await place.links.close()
    assert place.admins[1].closed
