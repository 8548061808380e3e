"""Producer id blocks (KIP-730): each id is allocated once."""

import pytest

from controller_core.decisions.broker_requests import BLOCK_SIZE, LAST_PRODUCER_ID, ProducerIdBlock
from controller_core.model import events
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import Driver, cluster_with
from tests.controller_core.decisions.written import WrittenProducerIds


def allocate(driver: Driver, broker_id: int = 1, epoch: int | None = None) -> object:
    """Request a block."""
    known = driver.brokers[broker_id].epoch if epoch is None else epoch
    return driver.submit(events.AllocateProducerIds(broker_id, known))


@pytest.mark.shows("C19")
def test_blocks_are_consecutive_for_all_brokers() -> None:
    """KIP-730: 1000 ids each, starting at 0."""
    driver = cluster_with([1, 2])

    assert [allocate(driver, broker_id) for broker_id in (1, 2, 1)] == [
        ProducerIdBlock(0, 1000),
        ProducerIdBlock(1000, 1000),
        ProducerIdBlock(2000, 1000),
    ]


def test_a_controller_that_takes_over_continues_after_the_last_block() -> None:
    """KIP-730: the block is written before the response."""
    driver = cluster_with([1])
    allocate(driver)
    driver.take_over()

    assert allocate(driver) == ProducerIdBlock(1000, 1000)


def test_a_stale_broker_epoch_is_refused() -> None:
    """KIP-730: STALE_BROKER_EPOCH."""
    driver = cluster_with([1])

    assert allocate(driver, epoch=1).code == ErrorCode.STALE_BROKER_EPOCH  # type: ignore[attr-defined]
    assert driver.written.producer_ids.block_end == -1


def test_an_unregistered_broker_is_refused() -> None:
    """KIP-730: BROKER_ID_NOT_REGISTERED, so that a starting broker retries."""
    driver = cluster_with([1])

    assert driver.submit(events.AllocateProducerIds(9, 5)).code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_the_last_block_is_allocated_and_no_id_beyond_64_bits() -> None:
    """Ids are not negative and 64 bits wide; none is allocated twice."""
    driver = cluster_with([1])
    driver.written.producer_ids = WrittenProducerIds(LAST_PRODUCER_ID - BLOCK_SIZE, 7)
    driver.take_over()

    assert allocate(driver) == ProducerIdBlock(LAST_PRODUCER_ID - BLOCK_SIZE + 1, BLOCK_SIZE)
    assert allocate(driver).code == ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[attr-defined]
