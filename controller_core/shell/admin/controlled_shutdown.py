"""ControlledShutdown, versions 0 to 3: a broker in ZooKeeper mode asks to exit; version 2 added the broker epoch (KIP-380).

Source: KafkaApis.handleControlledShutdownRequest.
"""

from controller_core.model.zookeeper_events import ControlledShutdown
from controller_core.shell.active import ActiveController
from controller_core.zookeeper_mode.controlled_shutdown import Remaining
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure


async def controlled_shutdown(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Move the broker's leaderships and return the remaining ones; the broker repeats the request until none remain."""
    answer: Failure | Remaining = await active.submit(_event(body))
    if isinstance(answer, Failure):
        return controlled_shutdown_refused(context, body, answer)
    return _response(answer)


def _event(body: Body) -> ControlledShutdown:
    """Translate the request; versions 0 and 1 have no epoch, so the field has its default (unknown)."""
    return ControlledShutdown(body["broker_id"], body["broker_epoch"])


def _response(remaining: Remaining) -> Body:
    """List the partitions that the broker still leads."""
    return {
        "error_code": ErrorCode.NONE,
        "remaining_partitions": [
            {"topic_name": topic, "partition_index": partition} for topic, partition in remaining.partitions
        ],
    }


def controlled_shutdown_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error; Kafka's code for NOT_CONTROLLER in this API is that of ControllerMovedException."""
    moved = failure.code == ErrorCode.NOT_CONTROLLER
    return {
        "error_code": ErrorCode.STALE_CONTROLLER_EPOCH if moved else failure.code,
        "remaining_partitions": [],
    }
