"""AlterPartition as a leader sends it, versions 0 to 3, and its answer. Source: DefaultAlterPartitionManager of Kafka."""

from kafka_wire import Body, ErrorCode
from light_broker.control.port import ControlPlaneError, IsrAnswer, IsrProposal
from light_broker.core.metadata_view import PartitionView

TOPIC_IDS_FROM, BROKER_EPOCHS_FROM = 2, 3
"""Versions with ids in place of names, and with the epochs of replicas' brokers."""


def alter_partition_body(broker_id: int, broker_epoch: int, proposal: IsrProposal, version: int) -> Body:
    """Return the request for one partition."""
    partition: Body = {
        "partition_index": proposal.partition.partition,
        "leader_epoch": proposal.leader_epoch,
        "partition_epoch": proposal.partition_epoch,
    }
    if version >= BROKER_EPOCHS_FROM:
        partition["new_isr_with_epochs"] = [
            {"broker_id": member.broker_id, "broker_epoch": member.broker_epoch} for member in proposal.isr
        ]
    else:
        partition["new_isr"] = [member.broker_id for member in proposal.isr]
    topic: Body = {"partitions": [partition]}
    if version >= TOPIC_IDS_FROM:
        topic["topic_id"] = proposal.topic_id
    else:
        topic["topic_name"] = proposal.partition.topic
    return {"broker_id": broker_id, "broker_epoch": broker_epoch, "topics": [topic]}


def isr_answer(answer: Body, known: PartitionView | None) -> IsrAnswer:
    """Return the answer for the partition, whose replicas are `known`. Raises ControlPlaneError for an answer without it."""
    check(answer["error_code"])
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            error = ErrorCode.of(partition["error_code"])
            if error is not ErrorCode.NONE:
                return IsrAnswer(error)
            replicas = () if known is None else known.replicas
            epochs = partition["leader_epoch"], partition["partition_epoch"]
            return IsrAnswer(error, PartitionView(replicas, tuple(partition["isr"]), partition["leader_id"], *epochs))
    raise ControlPlaneError(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller answered without the partition.")


def check(code: int) -> None:
    """Raise ControlPlaneError for an error of the whole request."""
    if code != ErrorCode.NONE:
        error = ErrorCode.of(code)
        raise ControlPlaneError(error, f"The controller answered {error.name}: {error.message}")
