"""Metadata of a broker in ZooKeeper mode: what the controller sent, and what the broker read from ZooKeeper itself. Pure.

UpdateMetadata names all live brokers and some partitions; a partition whose leader is LEADER_DURING_DELETE is deleted. Each function
returns the next view. Source: ZkMetadataCache.updateMetadata of Kafka 3.9.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_node.topic_names import is_internal
from kafka_wire import Body
from light_broker.core.metadata_view import (
    NO_CONTROLLER,
    NO_EPOCH,
    NO_LEADER,
    BrokerView,
    ConfigResource,
    Endpoint,
    MetadataView,
    PartitionView,
    TopicView,
)

LEADER_DURING_DELETE = -2
"""Leader of a deleted partition (LeaderAndIsr.LEADER_DURING_DELETE)."""

UNKNOWN_PARTITION = PartitionView((), (), NO_LEADER, NO_EPOCH, NO_EPOCH)
"""A partition below the highest known one that the controller did not send."""


def with_update(view: MetadataView, body: Body, own: BrokerView) -> MetadataView:
    """Return the metadata after an UpdateMetadata request. `own` has the epoch of this broker, which requests do not contain."""
    topics = dict(view.topics)
    for state in body["topic_states"]:
        name = state["topic_name"]
        known = topics.get(name)
        topic_id = state.get("topic_id", NO_TOPIC_ID)
        before: tuple[PartitionView, ...] = ()
        if known is not None and topic_id in {NO_TOPIC_ID, known.id}:
            before, topic_id = known.partitions, known.id
        sent = {
            partition["partition_index"]: None if partition["leader"] == LEADER_DURING_DELETE else _sent(partition)
            for partition in state["partition_states"]
        }
        partitions = _merged(before, sent)
        if partitions:
            topics[name] = TopicView(name, topic_id, partitions, is_internal(name))
        else:
            topics.pop(name, None)
    brokers = {broker["id"]: _broker(broker, own) for broker in body["live_brokers"]}
    controller = body["controller_id"]
    configs = {
        resource: values
        for resource, values in view.configs.items()
        if resource.type is not ConfigResourceType.TOPIC or resource.name not in view.topics or resource.name in topics
    }
    return replace(
        view,
        controller_id=controller if controller >= 0 else NO_CONTROLLER,
        brokers=brokers,
        topics=topics,
        topic_names_by_id=_names_by_id(topics.values()),
        configs=configs,
    )


def with_partitions(
    view: MetadataView, name: str, topic_id: UUID, states: Mapping[int, PartitionView]
) -> MetadataView | None:
    """Return the metadata with partitions of a LeaderAndIsr request, which precedes UpdateMetadata; None if they are known.

    A partition of the current topic whose epochs are not higher than the known ones stays as it is.
    """
    known = view.topics.get(name)
    if known is not None and topic_id not in {NO_TOPIC_ID, known.id}:
        known = None
    before = known.partitions if known is not None else ()
    newer = {
        number: state
        for number, state in states.items()
        if number >= len(before)
        or (state.leader_epoch, state.partition_epoch) > (before[number].leader_epoch, before[number].partition_epoch)
    }
    if not newer:
        return None
    topic = TopicView(name, topic_id if known is None else known.id, _merged(before, newer), is_internal(name))
    return replace(view, topics={**view.topics, name: topic})


def with_topic_ids(view: MetadataView) -> MetadataView:
    """Return the metadata with the names of the current topics by their ids."""
    return replace(view, topic_names_by_id=_names_by_id(view.topics.values()))


def with_configs(view: MetadataView, configs: Mapping[ConfigResource, Mapping[str, str]]) -> MetadataView:
    """Return the metadata with other configs of some resources."""
    merged = {**view.configs, **configs}
    return replace(view, configs={resource: values for resource, values in merged.items() if values})


def partition_of(sent: Body) -> PartitionView:
    """Return the state of a partition in a LeaderAndIsr request."""
    return PartitionView(
        tuple(sent["replicas"]), tuple(sent["isr"]), sent["leader"], sent["leader_epoch"], sent["partition_epoch"]
    )


def _sent(state: Body) -> PartitionView:
    return PartitionView(
        tuple(state["replicas"]),
        tuple(state["isr"]),
        state["leader"],
        state["leader_epoch"],
        state["zk_version"],
        offline_replicas=tuple(state["offline_replicas"]),
    )


def _merged(before: tuple[PartitionView, ...], sent: Mapping[int, PartitionView | None]) -> tuple[PartitionView, ...]:
    """Return the partitions of a topic with those that were sent; None: it is deleted."""
    known: dict[int, PartitionView | None] = {**dict(enumerate(before)), **sent}
    count = max((number + 1 for number, state in known.items() if state not in {None, UNKNOWN_PARTITION}), default=0)
    return tuple(known.get(number) or UNKNOWN_PARTITION for number in range(count))


def _broker(sent: Body, own: BrokerView) -> BrokerView:
    endpoints = {endpoint["listener"]: Endpoint(endpoint["host"], endpoint["port"]) for endpoint in sent["endpoints"]}
    epoch = own.epoch if sent["id"] == own.id else NO_EPOCH
    return BrokerView(sent["id"], epoch, sent["rack"], endpoints)


def _names_by_id(topics: Iterable[TopicView]) -> dict[UUID, str]:
    return {topic.id: topic.name for topic in topics if topic.id != NO_TOPIC_ID}
