"""Listing everything, at the start and then every so often."""

from __future__ import annotations

import asyncio

import pytest

from kafka_operator import kinds
from reconciler.engine.resync import NotInstalledError, Resync
from reconciler.engine.watch_lag import WatchLag
from reconciler.kube.port import NotFoundError, RefusedError, UnavailableError
from reconciler.metrics import Metrics
from reconciler.names import Key
from tests.kafka_operator.idle_core import idle_core
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually


class Place:
    """A resync over a fake API server."""

    def __init__(self, *namespaces: str) -> None:
        self.kube = FakeKube(Gate())
        core = idle_core(self.kube)
        self.cache = core.cache
        self.submitted: list[Key] = []
        self.resync = Resync(
            self.kube,
            self.cache,
            core.kinds,
            WatchLag(lambda: 0.0),
            self._submit,
            Metrics(),
            namespaces=namespaces,
            interval_s=100,
        )

    async def _submit(self, key: Key) -> None:
        self.submitted.append(key)


def test_everything_is_learnt_and_submitted_clusters_first() -> None:
    """So that the others find theirs."""

    async def story() -> None:
        place = Place()
        for raw in (raw_topic(), raw_topic("b"), raw_cluster()):
            place.kube.apply(raw)
        await place.resync.once()
        assert [key.name for key in place.submitted] == ["main", "orders", "b"]

    run_virtually(story())


def test_what_is_gone_is_forgotten_and_submitted_once_more() -> None:
    """Its connection is closed, and another Topic may take over."""

    async def story() -> None:
        place = Place()
        key = place.kube.apply(raw_topic())
        await place.resync.once()
        place.kube.delete(key)
        place.submitted.clear()
        await place.resync.once()
        assert place.submitted == [key]
        assert place.cache.get(key) is None

    run_virtually(story())


def test_only_the_given_namespaces_are_listed() -> None:
    """And a list of them forgets nothing of itself."""

    async def story() -> None:
        place = Place("shop", "other")
        place.kube.apply(raw_topic())
        elsewhere = raw_topic("far")
        elsewhere["metadata"]["namespace"] = "elsewhere"
        place.kube.apply(elsewhere)
        await place.resync.once()
        assert place.submitted == [Key(kinds.TOPIC, "shop", "orders")]

    run_virtually(story())


@pytest.mark.parametrize("error", [NotFoundError("404"), RefusedError("403")])
def test_a_kind_that_cannot_be_listed_ends_the_process(error: Exception) -> None:
    """With words: the definitions are not installed, or a right is missing."""

    async def story() -> None:
        place = Place()
        place.kube.failures.append(error)
        with pytest.raises(NotInstalledError):
            await place.resync.run()

    run_virtually(story())


def test_an_api_server_that_is_away_is_waited_for() -> None:
    """Not ready until everything was listed once."""

    async def story() -> None:
        place = Place()
        place.kube.failures += [UnavailableError("503"), UnavailableError("503")]
        task = asyncio.create_task(place.resync.run())
        await asyncio.sleep(1)
        assert not place.resync.loaded
        await asyncio.sleep(10)
        assert place.resync.loaded
        task.cancel()

    run_virtually(story())
