"""ControlledShutdown (KIP-143, KIP-380) and AllocateProducerIds (KIP-730)."""

import pytest

from controller_core.model.events import AllocateProducerIds, ControlledShutdown
from controller_core.model.ids import TopicPartition
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, ask, pick
from tests.controller_core.shell.admin.fake_active import active_with


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_a_brokers_leaderships_are_taken(version: int) -> None:
    """What nobody else can lead is named, so that the broker asks again."""
    active = await active_with_topic("a", {0: (1, 2), 1: (1, 3)})
    active.sync(TopicPartition("a", 1), (1,))

    response = await ask(active, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1}, version)

    assert pick(response, "error_code", "remaining_partitions") == {
        "error_code": ErrorCode.NONE,
        "remaining_partitions": [{"topic_name": "a", "partition_index": 1}],
    }
    assert active.cluster.columns.leader[active.row(TopicPartition("a", 0))] == 2


@pytest.mark.parametrize(("version", "epoch"), [(1, -1), (2, 101), (3, 101)])
async def test_the_broker_epoch_is_there_from_version_2_on(version: int, epoch: int) -> None:
    """KIP-380; an older broker's epoch is not known."""
    active = active_with()

    await ask(active, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1, "broker_epoch": 101}, version)

    assert active.submitted == [ControlledShutdown(1, epoch)]


@pytest.mark.parametrize(
    ("broker_id", "broker_epoch", "code"),
    [(1, 3, ErrorCode.STALE_BROKER_EPOCH), (9, 109, ErrorCode.BROKER_NOT_AVAILABLE)],
)
async def test_an_earlier_life_or_a_stranger_shuts_nothing_down(
    broker_id: int, broker_epoch: int, code: ErrorCode
) -> None:
    """KafkaController.doControlledShutdown."""
    active = active_with()

    response = await ask(active, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": broker_id, "broker_epoch": broker_epoch})

    assert pick(response, "error_code", "remaining_partitions") == {"error_code": code, "remaining_partitions": []}
    assert active.cluster.shutting_down == set()


async def test_without_a_tenure_a_shutdown_is_sent_elsewhere() -> None:
    """STALE_CONTROLLER_EPOCH is how ControllerMovedException is written."""
    response = await ask(None, ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1})

    assert response["error_code"] == ErrorCode.STALE_CONTROLLER_EPOCH


async def test_each_block_of_producer_ids_is_handed_out_once() -> None:
    """Blocks of a thousand, one behind the other (ProducerIdsBlock)."""
    active, asked = active_with(), {"broker_id": 2, "broker_epoch": 102}

    blocks = [await ask(active, ApiKey.ALLOCATE_PRODUCER_IDS, asked) for _ in range(2)]

    assert [(block["error_code"], block["producer_id_start"], block["producer_id_len"]) for block in blocks] == [
        (ErrorCode.NONE, 0, 1000),
        (ErrorCode.NONE, 1000, 1000),
    ]
    assert active.submitted[0] == AllocateProducerIds(2, 102)


async def test_an_earlier_life_gets_no_producer_ids() -> None:
    """STALE_BROKER_EPOCH; the block stays."""
    active = active_with()

    response = await ask(active, ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 2, "broker_epoch": 5})

    assert (
        response["error_code"],
        response["producer_id_start"],
        response["producer_id_len"],
    ) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
    assert active.cluster.producer_ids.block_end == -1


async def test_a_stranger_gets_no_producer_ids() -> None:
    """BROKER_ID_NOT_REGISTERED (KafkaController.processAllocateProducerIds)."""
    response = await ask(active_with(), ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 9, "broker_epoch": 109})

    assert response["error_code"] == ErrorCode.BROKER_ID_NOT_REGISTERED


async def test_without_a_tenure_no_producer_ids_are_handed_out() -> None:
    """The broker looks for the controller anew."""
    response = await ask(None, ApiKey.ALLOCATE_PRODUCER_IDS, {"broker_id": 2, "broker_epoch": 102})

    assert response["error_code"] == ErrorCode.NOT_CONTROLLER
