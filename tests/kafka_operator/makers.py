"""Resources and views for tests, each in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kafka_operator import kinds
from kafka_operator.decide.kafka.layout import Layout, Sizes
from kafka_operator.decide.kafka.observed import ConfigValue, KafkaPartition, KafkaTopic, Move, Quorum, QuorumNode
from kafka_operator.decide.plans.desired_plan import Material
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.plan_preparation import plan_for
from kafka_operator.decide.reassignments.reassignment import decide_reassignment
from kafka_operator.decide.reassignments.reassignment_deletion import decide_reassignment_deletion
from kafka_operator.decide.reassignments.reassignment_steps import MakePlan
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.decide.reassignments.reassignment_view import Step as MoveStep
from kafka_operator.decide.topics.topic import TopicView
from kafka_operator.names import MANAGED_CONFIG, ORIGIN
from kafka_operator.resources.cluster import Cluster, read_cluster
from kafka_operator.resources.reassignment import Assignment, Partition, Reassignment, read_reassignment
from kafka_operator.resources.topic import Topic, read_topic
from reconciler.names import API_VERSION, FINALIZER, Kind
from reconciler.resources.metadata import Condition

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CREATED = "2026-01-01T11:00:00Z"
DELETED = "2026-01-01T11:59:59Z"
TOPIC_ID = "11111111-1111-1111-1111-111111111111"
OURS = f"adopted/{TOPIC_ID}"
"""The note that the Topic owns the Kafka topic with that id, whatever its settings are."""
TO_CREATE = "created/1/-"
"""The note that a Topic of generation 1 is about to create its first Kafka topic."""

Raw = dict[str, Any]


def raw_object(kind: Kind, name: str, spec: Raw, **metadata: Any) -> Raw:
    """A resource as a user applies it."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"namespace": "shop", "name": name, **metadata},
        "spec": spec,
    }


def raw_topic(name: str = "orders", /, *, cluster: str = "main", **spec: Any) -> Raw:
    """A Topic as a user applies it; 6 partitions, RF 3."""
    return raw_object(
        kinds.TOPIC, name, {"clusterRef": {"name": cluster}, "partitions": 6, "replicationFactor": 3, **spec}
    )


def raw_cluster(name: str = "main", *servers: str, **spec: Any) -> Raw:
    """A Cluster as a user applies it."""
    return raw_object(kinds.CLUSTER, name, {"bootstrapServers": list(servers or ("kafka:9092",)), **spec})


def raw_reassignment(name: str = "move", /, *, cluster: str = "main", **spec: Any) -> Raw:
    """A Reassignment as a user applies it."""
    return raw_object(kinds.REASSIGNMENT, name, {"clusterRef": {"name": cluster}, **spec})


def raw_election(name: str = "elect", /, *, cluster: str = "main", **spec: Any) -> Raw:
    """An Election as a user applies it."""
    return raw_object(kinds.ELECTION, name, {"clusterRef": {"name": cluster}, **spec})


def raw_plan(topic: str = "orders", **replicas: list[int]) -> list[Raw]:
    """A plan: `raw_plan(p0=[2, 3, 4])`."""
    return [{"topic": topic, "partition": int(name[1:]), "replicas": list(ids)} for name, ids in replicas.items()]


def topic(
    name: str = "orders",
    /,
    *,
    held: bool = True,
    managed: str | None = None,
    origin: str = OURS,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    namespace: str = "shop",
    deleted: bool = False,
    generation: int = 1,
    uid: str = "uid-1",
    created: str = CREATED,
    **spec: Any,
) -> Topic:
    """A Topic as read back; by default it holds our finalizer, and notes the settings that it names and that the topic is its own."""
    named = [key for key, value in spec.get("config", {}).items() if value is not None]
    keys = ",".join(sorted(named)) if managed is None else managed
    notes = ({MANAGED_CONFIG: keys} if keys else {}) | ({ORIGIN: origin} if origin else {})
    raw = raw_topic(name, **spec)
    raw["metadata"] |= {
        "uid": uid,
        "resourceVersion": "7",
        "generation": generation,
        "creationTimestamp": created,
        "namespace": namespace,
        "finalizers": [*([FINALIZER] if held else []), *finalizers],
        "annotations": (notes if held else {}) | dict(annotations or {}),
    }
    if deleted:
        raw["metadata"]["deletionTimestamp"] = DELETED
    return read_topic(raw)


def cluster(*, held: bool = True, deleted: bool = False) -> Cluster:
    """A Cluster as read back."""
    raw = raw_cluster()
    raw["metadata"] |= {
        "uid": "uid-c",
        "resourceVersion": "5",
        "generation": 1,
        "creationTimestamp": CREATED,
        "finalizers": [FINALIZER] if held else [],
    }
    if deleted:
        raw["metadata"]["deletionTimestamp"] = DELETED
    return read_cluster(raw)


def quorum(
    leader_id: int,
    *followers: int,
    late: Sequence[int] = (),
    observers: Sequence[int] = (),
    late_observers: Sequence[int] = (),
) -> Quorum:
    """A quorum of a leader and its followers; nodes that are late last had the whole log a minute ago."""
    now_ms = 1_000_000

    def nodes(node_ids: Sequence[int], behind: Sequence[int]) -> tuple[QuorumNode, ...]:
        return tuple(
            QuorumNode(node_id, 50 if node_id in behind else 90, now_ms - 60_000 * (node_id in behind))
            for node_id in node_ids
        )

    return Quorum(leader_id, 7, 90, nodes((leader_id, *followers), late), nodes(observers, late_observers))


def reassignment(
    *, held: bool = True, deleted: bool = False, status: Raw | None = None, uid: str = "uid-r", **spec: Any
) -> Reassignment:
    """A Reassignment as read back."""
    raw = raw_reassignment(**spec)
    raw["metadata"] |= {
        "uid": uid,
        "resourceVersion": "9",
        "generation": 1,
        "creationTimestamp": CREATED,
        "finalizers": [FINALIZER] if held else [],
    }
    if deleted:
        raw["metadata"]["deletionTimestamp"] = DELETED
    raw["status"] = status or {}
    return read_reassignment(raw)


def kafka_topic(
    name: str = "orders",
    *,
    partitions: int = 6,
    replicas: tuple[int, ...] = (1, 2, 3),
    leader: int = 1,
    topic_id: str | None = TOPIC_ID,
    **config: str,
) -> KafkaTopic:
    """A topic as Kafka shows it; settings by name with `_` for `.`, typed as text."""
    return KafkaTopic(
        name,
        topic_id,
        tuple(KafkaPartition(index, leader, replicas) for index in range(partitions)),
        {key.replace("_", "."): ConfigValue(value, "STRING") for key, value in config.items()},
    )


def with_replicas(seen: KafkaTopic, index: int, replicas: tuple[int, ...]) -> KafkaTopic:
    """The same topic with other replicas of one partition."""
    changed = tuple(replace(item, replicas=replicas) if item.index == index else item for item in seen.partitions)
    return replace(seen, partitions=changed)


def topic_view(seen: KafkaTopic | None = None, **fields: Any) -> TopicView:
    """What a decision on a Topic sees, now."""
    return TopicView(now=NOW, observed=seen, **fields)


def view(*topics: KafkaTopic, **fields: Any) -> ReassignmentView:
    """What a decision on a Reassignment sees, now: brokers 1 to 4 by default."""
    fields.setdefault("broker_ids", (1, 2, 3, 4))
    return ReassignmentView(now=NOW, topics={item.name: item for item in topics}, **fields)


def decide(item: Reassignment, seen: ReassignmentView, *, sizes: Sizes | None = None) -> MoveStep:
    """Decide on a Reassignment as the engine does: plan and base as its status has them, and its plan made when it is asked for."""
    status = item.status
    if status.plan is not None and status.base is not None:
        seen = replace(seen, recorded=Recorded(status.plan, status.base))
    decided = decide_reassignment_deletion if item.metadata.deleted is not None else decide_reassignment
    step = decided(item, seen)
    if isinstance(step, MakePlan):
        layout = Layout(seen.topics, dict.fromkeys(seen.broker_ids))
        step = decided(item, replace(seen, wanted=plan_for(item, Material(layout, sizes), seen)))
    return step


def moving(topic_name: str, index: int, base: tuple[int, ...], target: tuple[int, ...]) -> dict[Partition, Move]:
    """One partition on its way."""
    adding = tuple(broker for broker in target if broker not in base)
    removing = tuple(broker for broker in base if broker not in target)
    return {Partition(topic_name, index): Move((*target, *removing), adding, removing)}


def assignments(topic_name: str = "orders", **replicas: tuple[int, ...]) -> tuple[Assignment, ...]:
    """`assignments(p0=(1, 2))`."""
    return tuple(Assignment(Partition(topic_name, int(name[1:])), ids) for name, ids in replicas.items())


def ready(conditions: tuple[Condition, ...]) -> tuple[str, str]:
    """Status and reason of the Ready condition."""
    (condition,) = [item for item in conditions if item.type == "Ready"]
    return condition.status, condition.reason
