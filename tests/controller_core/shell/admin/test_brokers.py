"""ControlledShutdown (KIP-143, KIP-380) and AllocateProducerIds (KIP-730)."""

import pytest

from controller_core.model import TopicPartition
from controller_core.model.events import AllocateProducerIds
from controller_core.model.zookeeper_events import ControlledShutdown
from kafka_wire import ApiKey, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, call, pick
from tests.controller_core.shell.admin.fake_active import active_with


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_controlled_shutdown_moves_leaderships(version: int) -> None:
    """Partitions without another possible leader are returned, so that the broker repeats the request."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 3)})
    active.sync(TopicPartition("a", 1), (1,))

    response = await call(active, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1}, version)

    assert pick(response, "error_code", "remaining_partitions") == {
        "error_code": ErrorCode.NONE,
        "remaining_partitions": [{"topic_name": "a", "partition_index": 1}],
    }
    assert active.cluster.columns.leader[active.row(TopicPartition("a", 0))] == 2


@pytest.mark.parametrize(("version", "epoch"), [(1, -1), (2, 101), (3, 101)])
async def test_broker_epoch_exists_from_version_2_on(version: int, epoch: int) -> None:
    """KIP-380; earlier versions have no epoch."""
    active = active_with()

    await call(active, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1, "broker_epoch": 101}, version)

    assert active.submitted == [ControlledShutdown(1, epoch)]


@pytest.mark.parametrize(
    ("broker_id", "broker_epoch", "code"),
    [(1, 3, ErrorCode.STALE_BROKER_EPOCH), (9, 109, ErrorCode.BROKER_NOT_AVAILABLE)],
)
async def test_controlled_shutdown_of_stale_or_unknown_broker_is_refused(
    broker_id: int, broker_epoch: int, code: ErrorCode
) -> None:
    """KafkaController.doControlledShutdown."""
    active = active_with()

    response = await call(active, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": broker_id, "broker_epoch": broker_epoch})

    assert pick(response, "error_code", "remaining_partitions") == {"error_code": code, "remaining_partitions": []}
    assert active.cluster.shutting_down == set()


async def test_standby_refuses_controlled_shutdown() -> None:
    """STALE_CONTROLLER_EPOCH is the code of ControllerMovedException."""
    response = await call(None, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1})

    assert response["error_code"] == ErrorCode.STALE_CONTROLLER_EPOCH


async def test_producer_id_blocks_are_allocated_once() -> None:
    """Consecutive blocks of a thousand ids (ProducerIdsBlock)."""
    active, requested = active_with(), {"broker_id": 2, "broker_epoch": 102}

    blocks = [await call(active, ApiKey.ALLOCATE_PRODUCER_IDS, requested) for _ in range(2)]

    assert [(block["error_code"], block["producer_id_start"], block["producer_id_len"]) for block in blocks] == [
        (ErrorCode.NONE, 0, 1000),
        (ErrorCode.NONE, 1000, 1000),
    ]
    assert active.submitted[0] == AllocateProducerIds(2, 102)


async def test_stale_broker_gets_no_producer_ids() -> None:
    """STALE_BROKER_EPOCH, and no block is used."""
    active = active_with()

    response = await call(active, ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 2, "broker_epoch": 5})

    assert (
        response["error_code"],
        response["producer_id_start"],
        response["producer_id_len"],
    ) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
    assert active.cluster.last_producer_id == -1


async def test_unknown_broker_gets_no_producer_ids() -> None:
    """BROKER_ID_NOT_REGISTERED (KafkaController.processAllocateProducerIds)."""
    response = await call(active_with(), ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 9, "broker_epoch": 109})

    assert response["error_code"] == ErrorCode.BROKER_ID_NOT_REGISTERED


async def test_standby_allocates_no_producer_ids() -> None:
    """NOT_CONTROLLER, after which the broker looks up the controller."""
    response = await call(None, ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 2, "broker_epoch": 102})

    assert response["error_code"] == ErrorCode.NOT_CONTROLLER
