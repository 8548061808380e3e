"""Events from brokers' answers: completed deletions, a newer controller, failed log directories.

Sources: C10; protocol notes, Z30; KIP-112.
"""

import pytest

from controller_core.model import TopicPartition
from controller_core.model.ids import EPOCH_DURING_DELETE
from controller_core.model.zookeeper_changes import OfflineReplicasObserved
from controller_core.model.zookeeper_events import LeaderAndIsrAnswered, StopReplicaAnswered
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.brokers.channel_world import PATIENCE_MS, World, stop
from tests.controller_core.shell.brokers.clusters import lead, metadata
from tests.controller_core.shell.brokers.fake_broker import refuse_once


@pytest.mark.shows("C10")
async def test_an_answered_deletion_is_an_event_of_that_broker(world: World) -> None:
    """C10: the topic's znode is deleted after every replica's broker has answered."""
    await world.send(stop(1, 0, delete=False), stop(1, 0, 1), stop(2, 0, 1))
    await world.channels.idle(PATIENCE_MS)

    done = (TopicPartition("orders", 0), TopicPartition("orders", 1))
    epochs = dict.fromkeys(done, EPOCH_DURING_DELETE)
    expected = [StopReplicaAnswered(broker, done, {}, epochs) for broker in (1, 2)]
    assert sorted(world.answers, key=lambda event: event.broker) == expected


async def test_a_stale_controller_epoch_at_the_top_level_deposes_the_controller(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Protocol notes, Z3: the broker knows a newer controller."""
    world.brokers[0].react = refuse_once(ErrorCode.STALE_CONTROLLER_EPOCH)
    await world.send(metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)

    assert world.deposed == 1
    assert [record.getMessage() for record in caplog.records] == ["Broker knows a newer controller"]


async def test_partition_error_11_does_not_depose_the_controller(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Protocol notes, Z30: the broker has the leader epoch already."""

    async def react(_key: ApiKey, body: Body) -> Body | None:
        topic_id = body["topic_states"][0]["topic_id"]
        return {"topics": [{"topic_id": topic_id, "partition_errors": [{"partition_index": 0, "error_code": 11}]}]}

    world.brokers[0].react = react
    await world.send(lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert world.deposed == 0
    assert caplog.records == []


async def test_replicas_in_failed_log_directories_are_an_event_when_their_state_changes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-112: KAFKA_STORAGE_ERROR marks a replica as offline; an answer without that error marks it as online."""
    code = ErrorCode.KAFKA_STORAGE_ERROR

    async def react(_key: ApiKey, body: Body) -> Body | None:
        topic_id = body["topic_states"][0]["topic_id"]
        errors = [{"partition_index": 0, "error_code": code}, {"partition_index": 1, "error_code": ErrorCode.NONE}]
        return {"topics": [{"topic_id": topic_id, "partition_errors": errors}]}

    world.brokers[0].react = react
    for expected in (
        LeaderAndIsrAnswered(1, 101, (TopicPartition("orders", 0),), ()),
        None,
        LeaderAndIsrAnswered(1, 101, (), (TopicPartition("orders", 0),)),
        None,
    ):
        world.answers.clear()
        await world.send(lead(world.cluster, 1))
        await world.channels.idle(PATIENCE_MS)
        assert ([] if expected is None else [expected]) == world.answers
        if expected is not None:
            apply(world.cluster, OfflineReplicasObserved(1, expected.offline, expected.online))
        else:
            code = ErrorCode.NONE

    assert [vars(record)["error"] for record in caplog.records] == ["KAFKA_STORAGE_ERROR"]


@pytest.mark.parametrize("code", [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR])
async def test_an_answer_that_changes_nothing_about_a_failed_log_directory_is_no_event(world: World, code: int) -> None:
    """STALE_CONTROLLER_EPOCH for a partition, or a repeated storage error, does not change the replica's state."""
    apply(world.cluster, OfflineReplicasObserved(1, (TopicPartition("orders", 0),), ()))

    async def react(_key: ApiKey, body: Body) -> Body | None:
        topic_id = body["topic_states"][0]["topic_id"]
        return {"topics": [{"topic_id": topic_id, "partition_errors": [{"partition_index": 0, "error_code": code}]}]}

    world.brokers[0].react = react
    await world.send(lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert world.answers == []
