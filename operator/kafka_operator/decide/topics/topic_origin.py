"""Origin of a Kafka topic: created by the Topic, adopted by it, or owned by another client.

    annotation steward.dev/origin     created/<generation>/<topic id before>     written before the topic is created
                                      adopted/<topic id>                         written before the topic is first changed

Until the status has the topic's id, only the annotation shows after a crash that the operator created the existing topic. A topic that is
found is adopted when it is as declared; else nothing is touched until the annotation steward.dev/adopt allows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.topics.topic_drift import digest_of, drift_text, find_drift
from kafka_operator.names import ADOPT, ORIGIN
from kafka_operator.resources.topic import Drift, Topic

CREATED, ADOPTED = "created", "adopted"

NO_ID = "-"
"""Id of a topic without one: none yet, or a cluster older than Kafka 2.8."""

ANY_DIFFERENCE = "true"
"""The consent to whatever differs at the moment when it is read."""


def creation_of(topic: Topic) -> str:
    """Return the annotation of a Topic that is about to create its Kafka topic."""
    return f"{CREATED}/{topic.metadata.generation}/{topic.status.topic_id or NO_ID}"


def adoption_of(observed: KafkaTopic) -> str:
    """Return the annotation of a Topic that adopts the existing Kafka topic."""
    return f"{ADOPTED}/{observed.topic_id or NO_ID}"


def creates(topic: Topic) -> bool:
    """Return whether the creation of the next Kafka topic has been announced, after the last one in the status.

    Once the status has a verdict on the spec of which it was announced, without a topic, it has come to nothing: what is found when the
    spec has changed may belong to another client.
    """
    kind, _, rest = (topic.metadata.annotation(ORIGIN) or "").partition("/")
    announced, _, after = rest.partition("/")
    if kind != CREATED or not announced.isdecimal() or after != (topic.status.topic_id or NO_ID):
        return False
    return not _edited_since(topic) or int(announced) > (topic.status.observed_generation or 0)


def is_adopted(topic: Topic, observed: KafkaTopic) -> bool:
    """Return whether the Kafka topic that is there was found and taken over, rather than created."""
    return topic.metadata.annotation(ORIGIN) == adoption_of(observed)


def is_ours(topic: Topic, observed: KafkaTopic) -> bool:
    """Return whether the Kafka topic that is there may be changed and deleted by this Topic.

    One that was announced as created, and differs though the spec is still the same, was created by another client at the same time.
    """
    if observed.topic_id is not None and observed.topic_id == topic.status.topic_id:
        return True
    if (
        observed.topic_id is None and topic.status.partitions is not None
    ):  # status shows only an owned or observed topic
        return True
    if is_adopted(topic, observed):
        return True
    return creates(topic) and (_edited_since(topic) or not find_drift(topic, observed))


def may_adopt(topic: Topic, observed: KafkaTopic, drift: Sequence[Drift]) -> bool:
    """Return whether a topic that the Topic does not own may be adopted: it is as declared, or its user has agreed to change it."""
    return not drift or topic.metadata.annotation(ADOPT) in {ANY_DIFFERENCE, digest_of(drift, observed)}


def adoption_message(topic: Topic, observed: KafkaTopic, drift: Sequence[Drift]) -> str:
    """Return what a person has to know, and to do, before a topic that differs is taken over."""
    digest, consent = digest_of(drift, observed), topic.metadata.annotation(ADOPT)
    stale = "" if consent is None else f"The annotation {ADOPT} is {consent}, which is for other differences. "
    return (
        f"The Kafka topic {topic.name} exists and differs: {drift_text(drift)}. It is not changed. {stale}"
        f"To apply the spec to it, annotate this Topic with {ADOPT}={digest} "
        f"(or {ADOPT}={ANY_DIFFERENCE} to accept any difference); or change the spec."
    )


def _edited_since(topic: Topic) -> bool:
    """Return whether the spec is another than the one of which the creation was announced."""
    announced = (topic.metadata.annotation(ORIGIN) or "").split("/")[1:2]
    return announced != [str(topic.metadata.generation)]
