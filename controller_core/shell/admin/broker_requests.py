"""Requests that brokers send on their own behalf, and UnregisterBroker.

- AllocateProducerIds, version 0 (KIP-730).
- AlterPartition, versions 0 to 3 (KIP-497): a leader requests new ISRs for its partitions. Versions 0 and 1 identify topics by name,
  versions 2 and 3 by id (KIP-841). Version 3 (KIP-903) has the broker epoch of each ISR member: a member that has restarted since must
  not join the ISR, because its log may be shorter than the leader assumes. Brokers in ZooKeeper mode send -1, which matches any epoch.
- UnregisterBroker, version 0: an administrator declares that a broker never returns. In ZooKeeper mode a broker's registration ends with
  its session. What remains is the deletions of topics that wait because the broker may still hold their logs (`stray_logs`).

Source: KafkaApis.handleAllocateProducerIdsRequest, KafkaController.alterPartitions,
Partition.addBrokerEpochToIsr, ControllerApis.handleUnregisterBroker (KRaft).
"""

from collections.abc import Iterator, Mapping

from controller_core.decisions.broker_requests import IsrAnswer, PartitionAnswer, ProducerIdBlock
from controller_core.model import NO_EPOCH, Cluster, Replicas, TopicPartition, events
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.responses import error_fields
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure

TOPIC_IDS_FROM = 2
"""First version of AlterPartition with topic ids and INELIGIBLE_REPLICA; earlier versions get OPERATION_NOT_ATTEMPTED instead."""
EPOCHS_FROM = 3
"""First version of AlterPartition with broker epochs of ISR members."""
RECOVERING = 1
"""LeaderRecoveryState.RECOVERING (KIP-704)."""

Answers = Mapping[TopicPartition, Failure | PartitionAnswer]


async def allocate_producer_ids(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Allocate a block of producer ids."""
    answer: Failure | ProducerIdBlock = await active.submit(allocate_producer_ids_event(body))
    if isinstance(answer, Failure):
        return allocate_producer_ids_refused(context, body, answer)
    return allocate_producer_ids_response(answer)


def allocate_producer_ids_event(body: Body) -> events.AllocateProducerIds:
    """Translate the request."""
    return events.AllocateProducerIds(body["broker_id"], body["broker_epoch"])


def allocate_producer_ids_response(block: ProducerIdBlock) -> Body:
    """Describe the block."""
    return {"error_code": ErrorCode.NONE, "producer_id_start": block.first, "producer_id_len": block.size}


def allocate_producer_ids_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error; the response has no field for a message."""
    return {"error_code": failure.code}


async def alter_partition(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Change the ISRs that are valid, and answer."""
    names = topic_names(active.cluster, context, body)
    refused = refuse_stale_broker_epochs(active.cluster, context, body, names)
    answer: IsrAnswer = await active.submit(alter_partition_event(context, body, names, refused))
    if isinstance(answer, Failure):
        return alter_partition_refused(context, body, answer)
    return alter_partition_response(context, body, names, {**answer, **refused})


def topic_names(cluster: Cluster, context: RequestContext, body: Body) -> list[str | None]:
    """Return the names of the request's topics in order; None for an unknown id."""
    if context.api_version < TOPIC_IDS_FROM:
        return [topic["topic_name"] for topic in body["topics"]]
    return [cluster.topic_name(topic["topic_id"]) for topic in body["topics"]]


def _requested_partitions(body: Body, names: list[str | None]) -> Iterator[tuple[TopicPartition, Body]]:
    for topic, name in zip(body["topics"], names, strict=True):
        for partition in topic["partitions"]:
            if name is not None:
                yield TopicPartition(name, partition["partition_index"]), partition


def refuse_stale_broker_epochs(
    cluster: Cluster, context: RequestContext, body: Body, names: list[str | None]
) -> dict[TopicPartition, Failure]:
    """Refuse ISRs with a member whose broker epoch differs from the registered one."""
    if context.api_version < EPOCHS_FROM:
        return {}
    refused: dict[TopicPartition, Failure] = {}
    for name, partition in _requested_partitions(body, names):
        members = partition["new_isr_with_epochs"]
        stale = [member["broker_id"] for member in members if _has_stale_epoch(cluster, member)]
        if stale:
            message = f"The broker epochs of these ISR members are not the registered ones: {stale} (KIP-903)."
            refused[name] = Failure(ErrorCode.INELIGIBLE_REPLICA, message)
    return refused


def _has_stale_epoch(cluster: Cluster, member: Body) -> bool:
    known = cluster.brokers.get(member["broker_id"])
    return member["broker_epoch"] != NO_EPOCH and (known is None or known.epoch != member["broker_epoch"])


def alter_partition_event(
    context: RequestContext, body: Body, names: list[str | None], refused: Mapping[TopicPartition, Failure]
) -> events.AlterPartition:
    """Translate the partitions that are not refused yet; of two entries for a partition the last one is used."""
    changes = {
        name: events.IsrChange(
            name,
            partition["leader_epoch"],
            requested_isr(context, partition),
            partition["partition_epoch"],
            partition["leader_recovery_state"] == RECOVERING,
        )
        for name, partition in _requested_partitions(body, names)
        if name not in refused
    }
    return events.AlterPartition(body["broker_id"], body["broker_epoch"], tuple(changes.values()))


def requested_isr(context: RequestContext, partition: Body) -> Replicas:
    """List the members of the requested ISR."""
    if context.api_version < EPOCHS_FROM:
        return tuple(partition["new_isr"])
    return tuple(member["broker_id"] for member in partition["new_isr_with_epochs"])


def alter_partition_response(context: RequestContext, body: Body, names: list[str | None], answers: Answers) -> Body:
    """Translate the outcome of each partition, in the order of the request."""
    topics = []
    for topic, name in zip(body["topics"], names, strict=True):
        partitions = [_partition(context, name, partition, answers) for partition in topic["partitions"]]
        topics.append({"topic_name": name or "", "topic_id": topic["topic_id"], "partitions": partitions})
    return {"error_code": ErrorCode.NONE, "topics": topics}


def _partition(context: RequestContext, topic: str | None, partition: Body, answers: Answers) -> Body:
    number = partition["partition_index"]
    if topic is None:
        return {"partition_index": number, "error_code": ErrorCode.UNKNOWN_TOPIC_ID}
    answer = answers[TopicPartition(topic, number)]
    if isinstance(answer, Failure):
        return {"partition_index": number, "error_code": error_code(context, answer)}
    return {
        "partition_index": number,
        "error_code": ErrorCode.NONE,
        "leader_id": answer.leader,
        "leader_epoch": answer.leader_epoch,
        "isr": list(answer.isr),
        "leader_recovery_state": partition["leader_recovery_state"],
        "partition_epoch": answer.partition_epoch,
    }


def error_code(context: RequestContext, failure: Failure) -> ErrorCode:
    """Choose an error code that exists in the version."""
    if failure.code == ErrorCode.INELIGIBLE_REPLICA and context.api_version < TOPIC_IDS_FROM:
        return ErrorCode.OPERATION_NOT_ATTEMPTED
    return failure.code


def alter_partition_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error: the broker repeats the request, after NOT_CONTROLLER to the new controller."""
    return {"error_code": failure.code, "topics": []}


async def unregister_broker(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Drop the records of logs that the broker may still hold."""
    failure: Failure | None = await active.submit(events.UnregisterBroker(body["broker_id"]))
    return error_fields(None) if failure is None else unregister_broker_refused(context, body, failure)


def unregister_broker_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error."""
    return error_fields(failure)
