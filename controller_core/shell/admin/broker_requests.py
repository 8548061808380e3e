"""What brokers ask for themselves: to have their leaderships taken, and producer ids.

ControlledShutdown, versions 0 to 3 (KIP-380 brought the broker epoch with version 2); AllocateProducerIds, version 0
(KIP-730). Source: KafkaApis.handleControlledShutdownRequest, handleAllocateProducerIdsRequest.
Leaves out AlterPartition: it has its own module.
"""

# MERGED controller_core.shell.admin.broker_requests: """AlterPartition, versions 0 to 3 (KIP-497): a leader asks for other ISRs of its partitions.
# MERGED controller_core.shell.admin.broker_requests:
# MERGED controller_core.shell.admin.broker_requests: Versions 0 and 1 name topics, 2 and 3 (KIP-841) give ids; version 3 (KIP-903) tells of each ISR member which life of that
# MERGED controller_core.shell.admin.broker_requests: broker is meant. A member that lives another life by now is not to join: its log may be shorter than the leader thinks.
# MERGED controller_core.shell.admin.broker_requests: Brokers in ZooKeeper mode send -1 there, any life.
# MERGED controller_core.shell.admin.broker_requests:
# MERGED controller_core.shell.admin.broker_requests: Source: KafkaController.alterPartitions, Partition.addBrokerEpochToIsr. Leaves out all other checks: the core makes them.
# MERGED controller_core.shell.admin.broker_requests: """
# MERGED controller_core.shell.admin.broker_requests: """UnregisterBroker, version 0: an operator declares that a broker never returns.
# MERGED controller_core.shell.admin.broker_requests:
# MERGED controller_core.shell.admin.broker_requests: In ZooKeeper mode a broker's registration goes with its session. What stays is what waits for it: deletions of topics of which it
# MERGED controller_core.shell.admin.broker_requests: may still hold logs (`zookeeper_mode.stray_logs`). Source: ControllerApis.handleUnregisterBroker (KRaft).
# MERGED controller_core.shell.admin.broker_requests: """
from collections.abc import Iterator, Mapping

from controller_core.decisions.isr import IsrAnswer, PartitionAnswer
from controller_core.decisions.producer_ids import ProducerIdBlock
from controller_core.decisions.shutdown import Remaining
from controller_core.model import events
from controller_core.model.cluster import Cluster
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.move import Replicas
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import error_fields
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode


async def controlled_shutdown(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Take the broker's leaderships, and tell it those that are left: it asks again until there is none."""
    answer: Failure | Remaining = await active.submit(controlled_shutdown_event(body))
    if isinstance(answer, Failure):
        return controlled_shutdown_refused(context, body, answer)
    return controlled_shutdown_response(answer)


def controlled_shutdown_event(body: Body) -> events.ControlledShutdown:
    """Translate the request; versions 0 and 1 carry no epoch and so have the field's default, not known."""
    return events.ControlledShutdown(body["broker_id"], body["broker_epoch"])


def controlled_shutdown_response(remaining: Remaining) -> Body:
    """Name the partitions that the broker still leads."""
    return {
        "error_code": ErrorCode.NONE,
        "remaining_partitions": [
            {"topic_name": topic, "partition_index": partition} for topic, partition in remaining.partitions
        ],
    }


def controlled_shutdown_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer at the top. That the controller is elsewhere Kafka says by another code here (ControllerMovedException)."""
    moved = failure.code == ErrorCode.NOT_CONTROLLER
    return {
        "error_code": ErrorCode.STALE_CONTROLLER_EPOCH if moved else failure.code,
        "remaining_partitions": [],
    }


async def allocate_producer_ids(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Hand out a block of producer ids."""
    answer: Failure | ProducerIdBlock = await active.submit(allocate_producer_ids_event(body))
    if isinstance(answer, Failure):
        return allocate_producer_ids_refused(context, body, answer)
    return allocate_producer_ids_response(answer)


def allocate_producer_ids_event(body: Body) -> events.AllocateProducerIds:
    """Translate the request."""
    return events.AllocateProducerIds(body["broker_id"], body["broker_epoch"])


def allocate_producer_ids_response(block: ProducerIdBlock) -> Body:
    """Name the block."""
    return {"error_code": ErrorCode.NONE, "producer_id_start": block.first, "producer_id_len": block.size}


def allocate_producer_ids_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer at the top; there is no place for words."""
    return {"error_code": failure.code}


TOPIC_IDS_FROM = 2
"""The same versions know INELIGIBLE_REPLICA; those below are told OPERATION_NOT_ATTEMPTED."""
EPOCHS_FROM = 3
RECOVERING = 1
"""LeaderRecoveryState (KIP-704)."""

Answers = Mapping[TopicPartition, Failure | PartitionAnswer]


async def alter_partition(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Write the ISRs that stand, and answer."""
    names = topic_names(active.cluster, context, body)
    refused = refuse_other_lives(active.cluster, context, body, names)
    answer: IsrAnswer = await active.submit(alter_partition_event(context, body, names, refused))
    if isinstance(answer, Failure):
        return alter_partition_refused(context, body, answer)
    return alter_partition_response(context, body, names, {**answer, **refused})


def topic_names(cluster: Cluster, context: RequestContext, body: Body) -> list[str | None]:
    """Name the request's topics, in its order; None for an id that no topic has."""
    if context.api_version < TOPIC_IDS_FROM:
        return [topic["topic_name"] for topic in body["topics"]]
    return [cluster.topic_name(topic["topic_id"]) for topic in body["topics"]]


def _asked(body: Body, names: list[str | None]) -> Iterator[tuple[TopicPartition, Body]]:
    for topic, name in zip(body["topics"], names, strict=True):
        for partition in topic["partitions"]:
            if name is not None:
                yield TopicPartition(name, partition["partition_index"]), partition


def refuse_other_lives(
    cluster: Cluster, context: RequestContext, body: Body, names: list[str | None]
) -> dict[TopicPartition, Failure]:
    """Refuse ISRs that name another life of a broker than the one that is registered."""
    if context.api_version < EPOCHS_FROM:
        return {}
    refused: dict[TopicPartition, Failure] = {}
    for name, partition in _asked(body, names):
        members = partition["new_isr_with_epochs"]
        others = [member["broker_id"] for member in members if _is_other_life(cluster, member)]
        if others:
            words = f"Registered under another broker epoch than the leader knows: {others} (KIP-903)."
            refused[name] = Failure(ErrorCode.INELIGIBLE_REPLICA, words)
    return refused


def _is_other_life(cluster: Cluster, member: Body) -> bool:
    known = cluster.brokers.get(member["broker_id"])
    return member["broker_epoch"] != NO_EPOCH and (known is None or known.epoch != member["broker_epoch"])


def alter_partition_event(
    context: RequestContext, body: Body, names: list[str | None], refused: Mapping[TopicPartition, Failure]
) -> events.AlterPartition:
    """Translate the partitions that are not refused already; of two wishes for one partition the last counts."""
    changes = {
        name: events.IsrChange(
            name,
            partition["leader_epoch"],
            asked_isr(context, partition),
            partition["partition_epoch"],
            partition["leader_recovery_state"] == RECOVERING,
        )
        for name, partition in _asked(body, names)
        if name not in refused
    }
    return events.AlterPartition(body["broker_id"], body["broker_epoch"], tuple(changes.values()))


def asked_isr(context: RequestContext, partition: Body) -> Replicas:
    """List the members of the ISR that is asked for."""
    if context.api_version < EPOCHS_FROM:
        return tuple(partition["new_isr"])
    return tuple(member["broker_id"] for member in partition["new_isr_with_epochs"])


def alter_partition_response(context: RequestContext, body: Body, names: list[str | None], answers: Answers) -> Body:
    """Translate what became of each partition, in the order of the request."""
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
    """Choose the code that the version knows."""
    if failure.code == ErrorCode.INELIGIBLE_REPLICA and context.api_version < TOPIC_IDS_FROM:
        return ErrorCode.OPERATION_NOT_ATTEMPTED
    return failure.code


def alter_partition_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer at the top: the broker asks for the same again, elsewhere when that says NOT_CONTROLLER."""
    return {"error_code": failure.code, "topics": []}


async def unregister_broker(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Forget what a broker may hold."""
    failure: Failure | None = await active.submit(events.UnregisterBroker(body["broker_id"]))
    return error_fields(None) if failure is None else unregister_broker_refused(context, body, failure)


def unregister_broker_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer at the top."""
    return error_fields(failure)
