"""Kubernetes events: once each, and no flood."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from reconciler.decide.steps import ResourceEvent
from reconciler.engine.event_recorder import BURST, MAX_BUCKETS, REFILL_S, EventRecorder
from reconciler.kube.events import MAX_MESSAGE_BYTES, event_body
from reconciler.kube.port import NewEvent, UnavailableError
from reconciler.names import Key
from tests.kafka_operator.idle_core import idle_core
from tests.kafka_operator.makers import topic
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate

EVENT = ResourceEvent(True, "ClusterUnreachable", "No broker answers.")


async def test_a_storm_of_the_same_news_comes_in_small_doses() -> None:
    """A thousand Topics of one dead cluster: a burst, then one per interval; other events are not limited."""
    now_s = 0.0
    kube = FakeKube(Gate())
    event_recorder = EventRecorder(kube, idle_core().kinds, lambda: now_s)
    for index in range(200):
        await event_recorder.record(topic(f"t{index}"), EVENT)
    assert len(kube.events) == BURST
    await event_recorder.record(topic(), ResourceEvent(True, "InvalidConfig", "Unknown topic config name: x"))
    await event_recorder.record(topic("far", cluster="other"), EVENT)
    assert len(kube.events) == BURST + 2
    now_s = REFILL_S
    await event_recorder.record(topic(), EVENT)
    await event_recorder.record(topic(), EVENT)
    assert len(kube.events) == BURST + 3


async def test_an_event_that_cannot_be_posted_is_dropped() -> None:
    """An event is not state."""
    kube = FakeKube(Gate())
    kube.failures.append(UnavailableError("503"))

    await EventRecorder(kube, idle_core().kinds, lambda: 0.0).record(topic(), EVENT)

    assert kube.events == []


def test_the_same_event_has_the_same_name_in_every_process() -> None:
    """Each event is posted once, also across restarts. A later version of the resource is another event."""
    event = NewEvent(Key(kinds.TOPIC, "shop", "orders"), "uid", "7", True, "InvalidConfig", "Unknown")

    def name(item: NewEvent) -> object:
        return event_body(item)["metadata"]["name"]

    assert name(event) == name(replace(event))
    others = [replace(event, resource_version="8"), replace(event, message="x"), replace(event, uid="other")]
    assert len({name(item) for item in (event, *others)}) == 4


@pytest.mark.slow
async def test_what_is_remembered_is_bounded() -> None:
    """A limit on everything."""
    kube = FakeKube(Gate())
    event_recorder = EventRecorder(kube, idle_core().kinds, lambda: 0.0)
    for index in range(MAX_BUCKETS + 50):
        await event_recorder.record(topic(), ResourceEvent(True, f"Reason{index}", ""))

    assert len(event_recorder._buckets) == MAX_BUCKETS


def test_an_event_names_its_object_and_fits() -> None:
    """core/v1 Event: at most 1024 bytes of message."""
    key = Key(kinds.TOPIC, "shop", "o" * 253)

    body = event_body(NewEvent(key, "uid-1", "7", True, "InvalidConfig", "ä" * 2000))

    assert (
        body["type"],
        body["involvedObject"]["uid"],
        body["involvedObject"]["apiVersion"],
    ) == ("Warning", "uid-1", "steward.dev/v1alpha1")
    assert len(body["message"].encode()) <= MAX_MESSAGE_BYTES
    assert len(body["metadata"]["name"]) <= 253
