"""InitProducerId: ids of idempotent producers (KIP-98, KIP-360). Source: KafkaApis.handleInitProducerIdRequest.

A transactional id is refused: this broker has no transactions. Producers ask for a coordinator first, and end there (`find_coordinator`);
UNSUPPORTED_VERSION ends one that does not, where COORDINATOR_NOT_AVAILABLE would let it retry until its timeout.
"""

import logging

from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode
from light_broker.control.port import ControlPlaneError
from light_broker.shell.broker import Broker

log = logging.getLogger(__name__)

VERSIONS = (0, 6)

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return a producer id with epoch 0."""
    if broker.guard is not None:
        refusal = await broker.guard.refuse(ApiKey.INIT_PRODUCER_ID, context, body)
        if refusal is not None:
            return refusal
    name = body["transactional_id"]
    if (body["producer_id"] == NO_PRODUCER_ID) != (body["producer_epoch"] == NO_PRODUCER_EPOCH) or name == "":
        return _answer(ErrorCode.INVALID_REQUEST)
    if name is not None:
        return _answer(ErrorCode.UNSUPPORTED_VERSION)
    try:
        return _answer(ErrorCode.NONE, await broker.producer_ids.take(), 0)
    except ControlPlaneError as failure:
        log.warning("Failed to allocate producer ids", extra={"error": str(failure)})
        return _answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _answer(error: ErrorCode, producer_id: int = NO_PRODUCER_ID, producer_epoch: int = NO_PRODUCER_EPOCH) -> Body:
    return {"error_code": error, "producer_id": producer_id, "producer_epoch": producer_epoch}
