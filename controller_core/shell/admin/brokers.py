"""What brokers ask for themselves: to have their leaderships taken, and producer ids.

ControlledShutdown, versions 0 to 3 (KIP-380 brought the broker epoch with version 2); AllocateProducerIds, version 0
(KIP-730). Source: KafkaApis.handleControlledShutdownRequest, handleAllocateProducerIdsRequest.
Leaves out AlterPartition: it has its own module.
"""

from controller_core.cluster.producer_ids import ProducerIdBlock
from controller_core.cluster.shutdown import Remaining
from controller_core.model import events
from controller_core.shell.active import ActiveController
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
