"""Responses to admission reviews of the API server, over fakes (features (e) 13)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.admin.port import Refusals
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.engine.admission import DEADLINE_S, Admission
from kafka_operator.metrics import KafkaMetrics
from reconciler.kube.port import UnavailableError
from reconciler.names import PAUSE, Key
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment, raw_topic
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually

MAIN = Key(kinds.CLUSTER, "shop", "main")


class Asked:
    """One API server, one Kafka with topic `orders` (3 partitions on brokers 1, 2, 3), and the webhook's own engine."""

    def __init__(self, *, namespaces: tuple[str, ...] = (), **cluster: Any) -> None:
        self.kube = FakeKube(Gate())
        self.kafka = FakeKafka(Gate())
        self.kafka.add("orders", [(1, 2, 3)] * 3)
        self.metrics = KafkaMetrics()
        self.kube.apply(raw_cluster(**cluster))
        self.admission = Admission(
            self.kube,
            lambda *_: self.kafka,
            self.metrics,
            namespaces=namespaces,
            clock=asyncio.get_running_loop().time,
            rng=random.Random(1),
        )

    async def __call__(self, raw: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> tuple[bool, str]:
        """Whether a resource may be taken, and the words: of the refusal, or of the warning."""
        request = {
            "uid": "u-1",
            "kind": {"group": "steward.dev", "version": "v1alpha1", "kind": raw["kind"]},
            "namespace": raw["metadata"]["namespace"],
            "name": raw["metadata"]["name"],
            "object": dict(raw),
            "oldObject": before,
        }
        review = await self.admission.review({"kind": "AdmissionReview", "request": request})
        response = review["response"]
        assert response["uid"] == "u-1"
        warnings = " ".join(response.get("warnings", ()))
        return response["allowed"], response.get("status", {}).get("message", warnings)


TOPICS: list[tuple[dict[str, Any], bool, str]] = [
    ({"topicName": "new"}, True, ""),
    (
        {"topicName": "new", "config": {"no.such": "1"}},
        False,
        "InvalidConfig: Topic orders is rejected: validation by the brokers failed",
    ),
    ({"topicName": "new", "replicationFactor": 5}, False, "larger than available brokers: 4"),
    ({"partitions": 3, "config": {"no.such": "1"}}, False, "Unknown topic config name: no.such"),
    ({"partitions": 4, "config": {"retention.ms": "1"}}, True, ""),
    ({"partitions": 2}, True, "has 3 partitions, and partitions cannot be removed"),
    (
        {"partitions": 3, "config": {"no.such": "1"}, "policy": "Observe"},
        True,
        "InvalidConfig: validation by the brokers failed",
    ),
]


@pytest.mark.parametrize(("spec", "taken", "text"), TOPICS, ids=lambda value: str(value)[:50])
async def test_a_topic_is_accepted_if_the_brokers_would_accept_it(spec: dict[str, Any], taken: bool, text: str) -> None:
    """Created, grown and altered by validateOnly; nothing is changed in Kafka."""
    asked = Asked()
    before = asked.kafka.state()

    allowed, message = await asked(raw_topic(**spec))

    assert (taken, True) == (allowed, text in message), message
    assert bool(text) == bool(message)
    assert before == asked.kafka.state()


REASSIGNMENTS: list[tuple[dict[str, Any], bool, str]] = [
    ({"plan": raw_plan(p0=[2, 3, 4])}, True, ""),
    ({"plan": raw_plan(p0=[2, 3, 9])}, False, "UnknownBroker: Brokers are not live: 9"),
    ({"plan": raw_plan(p7=[2, 3, 4])}, False, "UnknownPartition: Partitions do not exist: orders-7"),
    ({"plan": raw_plan("late", p0=[2])}, True, "UnknownTopic: Topics do not exist: late"),
    ({"topics": [{"name": "orders", "brokers": [1, 2]}]}, False, "NotEnoughBrokers"),
    ({"goal": {"addBrokers": [9]}}, False, "UnknownBroker: goal.addBrokers contains brokers that are not live: 9"),
    ({"goal": {"removeBrokers": [1, 2, 3, 4]}}, False, "NotEnoughBrokers"),
    (
        {"goal": {"replicationFactor": 4, "removeBrokers": [1]}},
        False,
        "NotEnoughBrokers: 4 replicas need the same number of brokers",
    ),
    ({"goal": {"rebalance": True, "topics": ["late"]}}, True, "UnknownTopic"),
    ({"goal": {"removeBrokers": [4]}}, True, ""),
    ({"planFrom": {"configMaps": ["a"], "digest": "sha256:0"}}, True, ""),
    (
        {"plan": raw_plan(p0=[2, 3, 4]), "windows": [{"schedule": "0 0 30 2 *", "duration": "1h"}]},
        False,
        "InvalidWindow: A window of spec.windows is invalid",
    ),
]


@pytest.mark.parametrize(("spec", "taken", "text"), REASSIGNMENTS, ids=lambda value: str(value)[:50])
async def test_a_reassignment_is_accepted_if_it_can_be_executed(spec: dict[str, Any], taken: bool, text: str) -> None:
    """Unknown brokers and partitions, goals that contradict each other or the cluster; what may yet come is a warning."""
    allowed, message = await Asked()(raw_reassignment(**spec))

    assert (taken, True) == (allowed, text in message), message
    assert bool(text) == bool(message)


@pytest.mark.shows("E13")
async def test_a_resource_is_admitted_with_a_warning_if_no_broker_answers() -> None:
    """Brokers away, no Cluster yet, an API server that does not answer."""
    asked = Asked()
    asked.kafka.reachable = False
    assert await asked(raw_topic()) == (
        True,
        "Accepted without validation by the brokers: No broker of Cluster main responds at kafka:9092.",
    )
    assert await asked(raw_reassignment(cluster="other", goal={"racks": True})) == (
        True,
        "Accepted without validation by the brokers: namespace shop has no Cluster other.",
    )
    away = {"type": "Ready", "status": "Unknown", "reason": "ClusterUnreachable", "message": "It is away."}
    now = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    asked.kube.objects[MAIN]["status"] = {"conditions": [away | now]}
    asked.kafka.gate.calls.clear()
    assert await asked(raw_topic()) == (True, "Accepted without validation by the brokers: It is away.")
    assert asked.kafka.gate.calls == []
    asked.kube.failures.append(UnavailableError("503"))
    allowed, message = await asked(raw_topic())
    assert (allowed, "could not be read" in message) == (True, True)


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    """A person waits for kubectl."""

    async def story() -> tuple[bool, str, float]:
        asked = Asked()

        async def never(*_: object, **__: object) -> Refusals:
            await asyncio.sleep(3600)
            return {}

        asked.kafka.create_topics = never
        began_s = asyncio.get_running_loop().time()
        answer = await asked(raw_topic(topicName="new"))
        return *answer, asyncio.get_running_loop().time() - began_s

    allowed, message, took_s = run_virtually(story())
    assert (allowed, f"no response within {DEADLINE_S:.0f} s" in message) == (True, True)
    assert DEADLINE_S <= took_s < DEADLINE_S + 1


async def test_what_passes_by_itself_is_no_refusal() -> None:
    """A controller that is being replaced."""
    asked = Asked()

    async def not_controller(*_: object, **__: object) -> Refusals:
        return {"new": Failure(41, "NOT_CONTROLLER", "This is not the controller.")}

    asked.kafka.create_topics = not_controller

    assert await asked(raw_topic(topicName="new")) == (
        True,
        "Accepted without validation by the brokers: This is not the controller.",
    )


async def test_an_invalid_window_of_an_existing_reassignment_is_only_warned_of() -> None:
    """It may be in the way of a cancel."""
    windows = [{"schedule": "0 0 30 2 *", "duration": "1h"}]
    before = raw_reassignment(plan=raw_plan(p0=[2, 3, 4]), windows=windows)
    cancelled = raw_reassignment(plan=raw_plan(p0=[2, 3, 4]), windows=windows, action="Cancel")

    allowed, message = await Asked()(cancelled, before)

    assert (allowed, "is not a cron expression" in message) == (True, True)


async def test_brokers_are_not_asked_about_fields_that_were_not_edited() -> None:
    """The operator's own finalizer, a label, a status, a deletion, a pause; another namespace than is served."""
    asked = Asked(namespaces=("shop",))
    bad = raw_topic(config={"no.such": "1"})
    labelled = {**bad, "metadata": {**bad["metadata"], "labels": {"a": "b"}}}
    leaving = {**bad, "metadata": {**bad["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    paused = {**bad, "metadata": {**bad["metadata"], "annotations": {PAUSE: "true"}}}
    elsewhere = {**bad, "metadata": {**bad["metadata"], "namespace": "other"}}
    for raw, before in ((labelled, bad), (leaving, raw_topic()), (paused, None), (elsewhere, None)):
        assert await asked(raw, before) == (True, "")

    assert asked.kafka.gate.calls == []
    assert not (await asked(bad, raw_topic()))[0]


async def test_a_namespace_is_held_to_the_clusters_rules_at_apply() -> None:
    """No broker has to be asked for that."""
    asked = Asked(allowedNamespaces=[{"namespaces": ["tenant"], "topicNames": ["${namespace}.*"]}])
    raw = raw_topic(clusterRef={"name": "main", "namespace": "shop"})
    raw["metadata"]["namespace"] = "tenant"
    allowed, message = await asked(raw)
    assert (allowed, message.startswith("NameNotAllowed")) == (False, True)
    moves = raw_reassignment(goal={"rebalance": True}, clusterRef={"name": "main", "namespace": "shop"})
    moves["metadata"]["namespace"] = "tenant"
    assert not (await asked(moves))[0]
    assert asked.kafka.gate.calls == []


async def test_answers_are_counted() -> None:
    """By kind and verdict."""
    asked = Asked()
    await asked(raw_topic(topicName="new"))
    await asked(raw_topic(config={"no.such": "1"}))

    for verdict in ("taken", "refused"):
        labels = {"kind": "Topic", "verdict": verdict}
        assert asked.metrics.registry.get_sample_value("steward_admission_reviews_total", labels) == 1


@pytest.mark.parametrize("raw", [{}, {"request": {}}, [], {"request": {"uid": "1", "kind": {"kind": "Pod"}}}], ids=str)
async def test_a_request_that_is_no_review_is_refused_with_the_reason(raw: Any) -> None:
    """The server answers 400."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        await Asked().admission.review(raw)
