"""Kubernetes events: once each, and no flood."""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.steps import Announcement
from kafka_operator.engine.announcer import BURST, MAX_BUCKETS, REFILL_S, Announcer
from kafka_operator.kube.events import MAX_MESSAGE_BYTES, event_body
from kafka_operator.kube.port import Notice, UnavailableError
from kafka_operator.names import Key, Kind
from tests.kafka_operator.fake_kube import FakeKube
from tests.kafka_operator.gate import Gate
from tests.kafka_operator.makers import topic

NEWS = Announcement(True, "ClusterUnreachable", "No broker answers.")


async def test_a_storm_of_the_same_news_comes_in_small_doses() -> None:
    """A thousand Topics of one dead cluster: a burst, then one in a while; other news still passes."""
    now_s = 0.0
    kube = FakeKube(Gate())
    announcer = Announcer(kube, lambda: now_s)
    for index in range(200):
        await announcer.announce(topic(f"t{index}"), NEWS)
    assert len(kube.events) == BURST
    await announcer.announce(topic(), Announcement(True, "InvalidConfig", "Unknown topic config name: x"))
    await announcer.announce(topic("far", cluster="other"), NEWS)
    assert len(kube.events) == BURST + 2
    now_s = REFILL_S
    await announcer.announce(topic(), NEWS)
    await announcer.announce(topic(), NEWS)
    assert len(kube.events) == BURST + 3


async def test_an_event_that_cannot_be_posted_is_let_go() -> None:
    """It is news, no state."""
    kube = FakeKube(Gate())
    kube.failures.append(UnavailableError("503"))

    await Announcer(kube, lambda: 0.0).announce(topic(), NEWS)

    assert kube.events == []


def test_the_same_event_has_the_same_name_in_every_process() -> None:
    """Each event is posted once, also across restarts. A later version of the resource is another event."""
    notice = Notice(Key(Kind.TOPIC, "shop", "orders"), "uid", "7", True, "InvalidConfig", "Unknown")

    def name(item: Notice) -> object:
        return event_body(item)["metadata"]["name"]

    assert name(notice) == name(replace(notice))
    others = [replace(notice, resource_version="8"), replace(notice, message="x"), replace(notice, uid="other")]
    assert len({name(item) for item in (notice, *others)}) == 4


async def test_what_is_remembered_is_bounded() -> None:
    """A limit on everything."""
    kube = FakeKube(Gate())
    announcer = Announcer(kube, lambda: 0.0)
    for index in range(MAX_BUCKETS + 50):
        await announcer.announce(topic(), Announcement(True, f"Reason{index}", ""))

    assert len(announcer._buckets) == MAX_BUCKETS


def test_an_event_names_its_object_and_fits() -> None:
    """core/v1 Event: at most 1024 bytes of message."""
    key = Key(Kind.TOPIC, "shop", "o" * 253)

    body = event_body(Notice(key, "uid-1", "7", True, "InvalidConfig", "ä" * 2000))

    assert (
        body["type"],
        body["involvedObject"]["uid"],
        body["involvedObject"]["apiVersion"],
    ) == ("Warning", "uid-1", "steward.dev/v1alpha1")
    assert len(body["message"].encode()) <= MAX_MESSAGE_BYTES
    assert len(body["metadata"]["name"]) <= 253
