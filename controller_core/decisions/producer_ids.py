"""Allocation of producer id blocks (KIP-730): each id is allocated once, to one broker."""

from dataclasses import dataclass

from controller_core.decisions.isr import refuse_stale_broker
from controller_core.model import Cluster, changes, events
from controller_core.model.decision import Decision
from kafka_wire.errors import ErrorCode, Failure

BLOCK_SIZE = 1000
"""Ids in a block: Kafka's own size (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE)."""
LAST_PRODUCER_ID = 2**63 - 1
"""Producer ids are 64 bits wide and not negative."""


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Ids from `first` on."""

    first: int
    size: int


def decide_allocate_producer_ids(
    cluster: Cluster, event: events.AllocateProducerIds
) -> Decision[Failure | ProducerIdBlock]:
    """Allocate the block after the last one."""
    unknown = ErrorCode.BROKER_ID_NOT_REGISTERED
    if (failure := refuse_stale_broker(cluster, event.broker, event.broker_epoch, unknown)) is not None:
        return Decision(reply=failure)
    first = cluster.producer_ids.block_end + 1
    last = first + BLOCK_SIZE - 1
    if last > LAST_PRODUCER_ID:
        return Decision(reply=Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been allocated."))
    return Decision(
        (changes.ProducerIdsAllocated(event.broker, first, last),), reply=ProducerIdBlock(first, BLOCK_SIZE)
    )
