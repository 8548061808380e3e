"""AssignReplicasToDirs (version 0, KIP-858): a broker reports in which of its log directories replicas are."""

from uuid import UUID

from controller_core.model import TopicPartition
from controller_core.model.quorum_events import AssignReplicasToDirs
from controller_core.quorum_mode.directories import Assigned
from controller_core.shell.kraft.broker_apis.registration import error_only
from controller_core.shell.kraft.controller import KRaftController
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure


async def assign_replicas_to_dirs(controller: KRaftController, context: RequestContext, body: Body) -> Body:
    """Note the directories, and answer for each replica."""
    topic_ids: set[UUID] = {topic["topic_id"] for directory in body["directories"] for topic in directory["topics"]}
    names = {topic_id: controller.cluster.topic_name(topic_id) for topic_id in topic_ids}
    assigned = {
        TopicPartition(name, partition["partition_index"]): directory["id"]
        for directory in body["directories"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
        if (name := names[topic["topic_id"]]) is not None
    }
    event = AssignReplicasToDirs(body["broker_id"], body["broker_epoch"], assigned)
    answer: Failure | Assigned = await controller.submit(event)
    if isinstance(answer, Failure):
        return error_only(context, body, answer)

    def result(topic_id: UUID, partition: int) -> Body:
        name = names[topic_id]
        if name is None:
            return {"partition_index": partition, "error_code": ErrorCode.UNKNOWN_TOPIC_ID}
        failure = answer[TopicPartition(name, partition)]
        return {"partition_index": partition, "error_code": ErrorCode.NONE if failure is None else failure.code}

    directories = [
        {
            "id": directory["id"],
            "topics": [
                {
                    "topic_id": topic["topic_id"],
                    "partitions": [
                        result(topic["topic_id"], partition["partition_index"]) for partition in topic["partitions"]
                    ],
                }
                for topic in directory["topics"]
            ],
        }
        for directory in body["directories"]
    ]
    return {"error_code": ErrorCode.NONE, "directories": directories}
