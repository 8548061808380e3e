"""Writes to Kubernetes, guarded by the version that they were decided on."""

from __future__ import annotations

import asyncio

import pytest

from kafka_operator.decide.steps import Claim
from kafka_operator.names import MANAGED_CONFIG, ORIGIN
from kafka_operator.resources.topic import Topic, TopicStatus, read_topic
from reconciler.decide.steps import Done, Release, Retry, WriteStatus
from reconciler.engine.writer import MAX_PARALLEL_WRITES
from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError, UnavailableError
from reconciler.names import FINALIZER, Key
from tests.kafka_operator.idle_core import idle_core
from tests.kafka_operator.makers import raw_topic
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate


class Place:
    """A writer over a fake API server."""

    def __init__(self) -> None:
        self.kube = FakeKube(Gate())
        core = idle_core(self.kube)
        self.cache, self.writer = core.cache, core.writer

    def have(self, name: str = "orders", **metadata: object) -> Topic:
        """Have a Topic, known to the cache."""
        raw = raw_topic(name)
        raw["metadata"] |= metadata
        key = self.kube.apply(raw)
        return self.known(key)

    def known(self, key: Key) -> Topic:
        """Read a Topic as it is now."""
        found = read_topic(self.kube.objects[key])
        self.cache.store(found)
        return found


async def test_a_write_is_learnt_at_once() -> None:
    """So that the next decision and the watch event that follows find nothing new."""
    place = Place()
    topic = place.have(finalizers=["foreign/one"], annotations={"foreign": "note"})

    assert await place.writer.carry_out(topic, Claim(frozenset({"b", "a"}))) is None

    learnt = place.cache.get_as(Topic, topic.key)
    assert learnt is not None
    assert learnt.metadata.finalizers == ("foreign/one", FINALIZER)
    assert learnt.managed_config == frozenset({"a", "b"})
    assert place.kube.objects[topic.key]["metadata"]["annotations"]["foreign"] == "note"


async def test_where_a_topic_comes_from_is_noted_with_the_claim() -> None:
    """One write for finalizer, settings and origin; a claim without an origin keeps it."""
    place = Place()
    topic = place.have()

    await place.writer.carry_out(topic, Claim(frozenset({"a"}), "created/1/-"))
    await place.writer.carry_out(place.known(topic.key), Claim())

    assert place.kube.objects[topic.key]["metadata"]["annotations"] == {ORIGIN: "created/1/-"}
    assert len(place.kube.writes) == 2


async def test_a_status_decided_on_an_old_version_is_not_written() -> None:
    """409: the current state is read, and the decision made again."""
    place = Place()
    topic = place.have()
    place.kube.touch(topic.key)

    assert await place.writer.carry_out(topic, WriteStatus(TopicStatus(partitions=6))) is None

    assert "status" not in place.kube.objects[topic.key]
    learnt = place.cache.get_as(Topic, topic.key)
    assert learnt is not None
    assert learnt.metadata.resource_version != topic.metadata.resource_version


async def test_only_what_differs_is_sent() -> None:
    """A plan of thousands of partitions is not sent again with each second's progress."""
    place = Place()
    topic = place.have()
    await place.writer.carry_out(topic, WriteStatus(TopicStatus(partitions=6, topic_name="orders")))
    changed = WriteStatus(TopicStatus(topic_name="orders", replication_factor=3))

    await place.writer.carry_out(place.known(topic.key), changed)

    status = place.kube.objects[topic.key]["status"]
    assert {"conditions": [], **status} == {"topicName": "orders", "replicationFactor": 3, "conditions": []}


async def test_the_last_finalizer_lets_it_go() -> None:
    """And it is forgotten; a foreign finalizer keeps it."""
    place = Place()
    going = place.have(finalizers=[FINALIZER])
    staying = place.have("staying", finalizers=[FINALIZER, "foreign/one"], annotations={MANAGED_CONFIG: "a"})
    for key in (going.key, staying.key):
        place.kube.delete(key)

    assert await place.writer.carry_out(place.known(going.key), Release()) == Done()
    assert await place.writer.carry_out(place.known(staying.key), Release()) == Done()

    assert list(place.kube.objects) == [staying.key]
    assert place.cache.get(going.key) is None
    assert place.known(staying.key).metadata.finalizers == ("foreign/one",)


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ([NotFoundError("404")], Done),
        ([ConflictError("409"), NotFoundError("404")], Done),
        ([ConflictError("409"), UnavailableError("503")], Retry),
        ([RefusedError("422")], Retry),
        ([UnavailableError("429")], Retry),
    ],
    ids=str,
)
async def test_a_failed_write_ends_the_try(errors: list[KubeError], outcome: type[object]) -> None:
    """Gone is done; the rest is tried again later."""
    place = Place()
    topic = place.have()
    place.kube.failures += errors

    assert isinstance(await place.writer.carry_out(topic, Claim()), outcome)


async def test_writes_under_way_are_limited() -> None:
    """A busy API server answers 429 to more."""
    place = Place()
    topics = [place.have(f"t{index}") for index in range(3 * MAX_PARALLEL_WRITES)]
    under_way = 0
    most = 0
    patch = place.kube.patch_object

    async def counted(key: Key, body: dict[str, object]) -> object:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await patch(key, body)
        finally:
            under_way -= 1

    place.kube.patch_object = counted
    await asyncio.gather(*(place.writer.carry_out(topic, Claim()) for topic in topics))

    assert most == MAX_PARALLEL_WRITES
