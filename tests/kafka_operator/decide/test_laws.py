"""Laws that hold for every Topic and everything that Kafka may show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.kafka.observed import ConfigValue, KafkaPartition, KafkaTopic
from kafka_operator.decide.steps import (
    AlterConfig,
    Apply,
    Claim,
    CreateReassignment,
    CreateTopic,
    DropTopic,
    GrowTopic,
    TopicAction,
)
from kafka_operator.decide.tenants.tenancy import Refusal
from kafka_operator.decide.topics.config import config_changes
from kafka_operator.decide.topics.topic import TopicView, decide_topic, desired_actions
from kafka_operator.decide.topics.topic_deletion import decide_topic_deletion
from kafka_operator.decide.topics.topic_drift import find_drift
from kafka_operator.decide.topics.topic_origin import is_ours
from kafka_operator.names import ADOPT, MANAGED_CONFIG, ORIGIN
from kafka_operator.resources.topic import Topic, TopicStatus, read_topic
from reconciler.decide.steps import Done, Release, Retry, WriteStatus
from reconciler.names import FINALIZER
from reconciler.resources.metadata import Metadata
from tests.kafka_operator.makers import NOW, OURS, TO_CREATE, TOPIC_ID, ready, topic

KEYS = st.sampled_from(["retention.ms", "cleanup.policy", "segment.ms", "max.message.bytes"])
CONFIGS = st.dictionaries(KEYS, st.sampled_from(["1", "2", "x"]), max_size=4)
OTHER_ID = "22222222-2222-2222-2222-222222222222"
MAX_STEPS = 9


@st.composite
def declared(draw: st.DrawFn) -> Topic:
    """Any Topic, held or not, of either policy, that may have set any settings before and knows its Kafka topic or does not."""
    config = draw(CONFIGS)
    made = topic(
        held=draw(st.booleans()),
        managed=",".join(sorted(draw(st.sets(KEYS)))),
        origin=draw(st.sampled_from(["", OURS, TO_CREATE])),
        annotations=draw(st.sampled_from([{}, {}, {ADOPT: "true"}])),
        generation=draw(st.integers(1, 5)),
        partitions=draw(st.integers(1, 6)),
        replicationFactor=draw(st.integers(1, 4)),
        config=config,
        unmanagedConfig=sorted(draw(st.sets(KEYS)) - config.keys()),
        policy=draw(st.sampled_from(["Enforce", "Enforce", "Observe"])),
    )
    assert isinstance(made, Topic)
    return replace(made, status=TopicStatus(topic_id=draw(st.sampled_from([None, TOPIC_ID, OTHER_ID]))))


@st.composite
def shown(draw: st.DrawFn) -> KafkaTopic | None:
    """Any topic that Kafka may show, or none."""
    if draw(st.booleans()):
        return None
    factor = draw(st.integers(1, 4))
    partitions = tuple(
        KafkaPartition(index, draw(st.sampled_from([-1, 1, 2])), tuple(range(1, factor + 1)))
        for index in range(draw(st.integers(1, 8)))
    )
    config = {name: ConfigValue(value, "STRING") for name, value in draw(CONFIGS).items()}
    return KafkaTopic("orders", TOPIC_ID, partitions, config)


def carry_out(action: TopicAction, seen: KafkaTopic | None) -> KafkaTopic | None:
    """Do what Kafka does."""
    match action:
        case CreateTopic():
            assert seen is None
            partitions = tuple(
                KafkaPartition(index, 1, tuple(range(1, action.replication_factor + 1)))
                for index in range(action.partitions)
            )
            config = {name: ConfigValue(value, "STRING") for name, value in action.config}
            return KafkaTopic(action.name, TOPIC_ID, partitions, config)
        case GrowTopic():
            assert seen is not None
            assert action.partitions > len(seen.partitions)
            added = range(len(seen.partitions), action.partitions)
            more = tuple(KafkaPartition(index, 1, seen.partitions[0].replicas) for index in added)
            return replace(seen, partitions=seen.partitions + more)
        case AlterConfig():
            assert seen is not None
            config = {name: value for name, value in seen.config.items() if name not in action.reset}
            return replace(seen, config=config | {name: ConfigValue(value, "STRING") for name, value in action.set})
        case DropTopic():
            return None
        case _:
            raise AssertionError(f"{action} is not for Kafka")


def claimed(before: Topic, claim: Claim) -> Topic:
    """Do what the API server does with a claim."""
    names = ",".join(sorted(claim.managed_config))
    notes = dict(before.metadata.annotations) | {MANAGED_CONFIG: names}
    if claim.origin is not None:
        notes[ORIGIN] = claim.origin
    metadata: Metadata = replace(
        before.metadata,
        finalizers=(FINALIZER,),
        annotations=tuple(sorted((name, text) for name, text in notes.items() if text)),
    )
    return replace(before, metadata=metadata)


def released(before: Topic) -> Topic:
    """Do what the API server does with a release."""
    return replace(before, metadata=replace(before.metadata, finalizers=()))


def moved(step: CreateReassignment, seen: KafkaTopic) -> KafkaTopic:
    """Do what the Reassignment does."""
    factor = step.spec["goal"]["replicationFactor"]
    return replace(
        seen, partitions=tuple(replace(item, replicas=tuple(range(1, factor + 1))) for item in seen.partitions)
    )


def pends(current: Topic) -> bool:
    """Whether it waits for its user's consent."""
    return ready(current.status.conditions) == ("False", "AdoptionPending")


def converge(before: Topic, seen: KafkaTopic | None) -> tuple[Topic, KafkaTopic | None]:
    """Carry out steps until none is left."""
    current = before
    for _ in range(MAX_STEPS):
        step = decide_topic(current, TopicView(now=NOW, observed=seen, waited_s=60))
        if isinstance(step, Done | Retry):
            return current, seen
        if isinstance(step, Claim):
            current = claimed(current, step)
        elif isinstance(step, Release):
            current = released(current)
        elif isinstance(step, CreateReassignment):
            assert seen is not None
            seen = moved(step, seen)
        elif isinstance(step, Apply) and step.asks_only:
            step = decide_topic(current, TopicView(now=NOW, observed=seen, waited_s=60, applied=True))
            if isinstance(step, Done | Retry):
                return current, seen
            assert isinstance(step, WriteStatus | Release), step
            current = released(current) if isinstance(step, Release) else replace(current, status=step.status)
        elif isinstance(step, Apply):
            for action in step.actions:
                seen = carry_out(action, seen)
        else:
            assert isinstance(step, WriteStatus), step
            current = replace(current, status=step.status)
    raise AssertionError(f"no end after {MAX_STEPS} steps")


@pytest.mark.shows("O1", "O2")
@given(declared(), shown())
def test_every_topic_converges_and_then_nothing_is_done(before: Topic, seen: KafkaTopic | None) -> None:
    """O1, O2: a bounded number of steps, after which the same poll needs none."""
    current, settled = converge(before, seen)

    again, unchanged = converge(current, settled)

    assert (current, settled) == (again, unchanged)
    assert current.observes or pends(current) or desired_actions(current, settled) == ()


@given(declared(), shown())
def test_drift_that_can_be_corrected_is_corrected_in_the_end(before: Topic, seen: KafkaTopic | None) -> None:
    """Partitions at least as many; settings of the spec set, those that were ours and are not in it gone."""
    current, settled = converge(before, seen)

    if current.observes or pends(current):
        return
    assert settled is not None
    assert len(settled.partitions) >= current.partitions
    assert config_changes(dict(current.config), before.managed_config, settled.config) == ((), ())


@pytest.mark.shows("E6")
@given(declared(), shown())
def test_topics_that_observe_or_wait_for_consent_are_not_changed(before: Topic, seen: KafkaTopic | None) -> None:
    """Neither has any effect on Kafka; each lists in what the topic differs, until there is nothing to list."""
    current, settled = converge(before, seen)

    if current.observes or pends(current):
        assert seen == settled
        assert find_drift(current, seen) == current.status.drift


@pytest.mark.shows("F7")
@given(declared(), shown())
def test_unmanaged_settings_are_never_changed(before: Topic, seen: KafkaTopic | None) -> None:
    """Neither set nor reset, whatever this Topic has set before, and no difference is reported."""
    _, settled = converge(before, seen)

    if seen is not None and settled is not None:
        for name in before.unmanaged:
            assert seen.config.get(name) == settled.config.get(name)
            assert all(item.field != f"config.{name}" for item in find_drift(before, seen))


@pytest.mark.shows("O8")
@given(declared(), shown())
def test_partitions_are_never_fewer_than_before(before: Topic, seen: KafkaTopic | None) -> None:
    """O8: and no step ever deletes a topic that is declared."""
    for action in desired_actions(before, seen):
        assert not isinstance(action, DropTopic)
        if isinstance(action, GrowTopic):
            assert seen is not None
            assert action.partitions > len(seen.partitions)


@given(declared(), shown())
def test_what_others_set_is_left_alone(before: Topic, seen: KafkaTopic | None) -> None:
    """Only settings that the spec names, or that this Topic may have set, are touched."""
    ours = before.managed_config | frozenset(dict(before.config))
    for action in desired_actions(before, seen):
        if isinstance(action, AlterConfig):
            assert set(action.reset) | {name for name, _ in action.set} <= ours


@pytest.mark.shows("O4")
@given(declared(), shown())
def test_nothing_is_done_in_kafka_without_the_finalizer(before: Topic, seen: KafkaTopic | None) -> None:
    """O4, for a living Topic and for one that is being deleted."""
    bare = replace(before, metadata=replace(before.metadata, finalizers=()))
    going = replace(bare, metadata=replace(bare.metadata, deleted=NOW))
    view = TopicView(now=NOW, observed=seen)

    step = decide_topic(bare, view)
    assert not isinstance(step, Apply) or step.asks_only
    assert decide_topic_deletion(going, view) == Done()


@pytest.mark.shows("O4")
@given(declared(), shown())
def test_only_topics_that_a_resource_owns_are_changed_or_deleted(before: Topic, seen: KafkaTopic | None) -> None:
    """O4: created by it, or taken over and noted as such; one that only observes has no effect at all."""
    going = replace(before, metadata=replace(before.metadata, deleted=NOW))
    view = TopicView(now=NOW, observed=seen, waited_s=60)

    for item, step in ((before, decide_topic(before, view)), (going, decide_topic_deletion(going, view))):
        if isinstance(step, Apply) and step.asks_only:
            assert item.observes
        elif isinstance(step, Apply | CreateReassignment):
            assert not item.observes
            assert item.metadata.has_finalizer
            assert seen is None or is_ours(item, seen)


@given(declared(), shown(), st.sampled_from(["NotAllowed", "NameNotAllowed", "QuotaExceeded"]))
def test_a_namespace_that_may_not_has_no_effect(before: Topic, seen: KafkaTopic | None, reason: str) -> None:
    """A tenant never edits another's cluster; what it may still do beyond its quota is to delete what is its own."""
    going = replace(before, metadata=replace(before.metadata, deleted=NOW))
    view = TopicView(now=NOW, observed=seen, waited_s=60, refusal=Refusal(reason, "No."))

    assert isinstance(decide_topic(before, view), WriteStatus)
    if reason != "QuotaExceeded":
        assert isinstance(decide_topic_deletion(going, view), Release | Done)


@pytest.mark.shows("O6")
@given(declared(), shown())
def test_the_generation_is_observed_only_when_no_action_is_left(before: Topic, seen: KafkaTopic | None) -> None:
    """O6."""
    step = decide_topic(before, TopicView(now=NOW, observed=seen))

    if isinstance(step, WriteStatus):
        assert before.observes or ready(step.status.conditions)[0] != "True" or desired_actions(before, seen) == ()
        assert before.metadata.generation == step.status.observed_generation


@pytest.mark.shows("O7")
@given(declared(), shown())
def test_a_status_reads_back_as_it_was_written(before: Topic, seen: KafkaTopic | None) -> None:
    """Otherwise every poll would find a difference and write again (O7)."""
    current, _ = converge(before, seen)
    raw = {
        "metadata": {
            "namespace": "shop",
            "name": "orders",
            "uid": "u",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"clusterRef": {"name": "main"}, "partitions": 1, "replicationFactor": 1},
        "status": {name: value for name, value in current.status.to_patch().items() if value is not None},
    }

    assert current.status == read_topic(raw).status
    assert isinstance(current.status, TopicStatus)
