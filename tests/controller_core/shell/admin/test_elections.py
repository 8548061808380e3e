"""ElectLeaders (KIP-183, KIP-460, KafkaApis.handleElectLeaders)."""

import pytest

from controller_core.model import TopicPartition
from controller_core.model.events import ElectLeaders, RepairPartitions
from controller_core.model.zookeeper_events import ControlledShutdown
from controller_core.shell.admin import partitions
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker

PREFERRED, UNCLEAN = 0, 1


def request(topics: dict[str, list[int]] | None, election_type: int = PREFERRED, timeout_ms: int = 60_000) -> Body:
    """Return a request."""
    named = None if topics is None else [{"topic": name, "partitions": ids} for name, ids in topics.items()]
    return {"election_type": election_type, "topic_partitions": named, "timeout_ms": timeout_ms}


def results(response: Body) -> dict[str, dict[int, int]]:
    """Return error codes by topic and partition."""
    return {
        topic["topic"]: {result["partition_id"]: result["error_code"] for result in topic["partition_result"]}
        for topic in response["replica_election_results"]
    }


async def with_another_leader() -> FakeActive:
    """Topic a: partition 0 is led by broker 2 although 1 is preferred and in sync; partition 1 is led by its preferred one."""
    active = await active_with_topic("a", {0: (1, 2), 1: (3, 2)})
    active.run(ControlledShutdown(1))
    registered = [broker(2), broker(3)]
    active.brokers_are(*registered)
    active.brokers_are(broker(1), *registered)
    active.sync(TopicPartition("a", 0), (2, 1))
    assert leader(active, 0) == 2
    return active


def leader(active: FakeActive, partition: int) -> int:
    """Return the leader of a partition of topic a."""
    return int(active.cluster.columns.leader[active.row(TopicPartition("a", partition))])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_preferred_leader_is_elected(version: int) -> None:
    """Version 0 has only this election type and no field for it."""
    active = await with_another_leader()
    requested = request({"a": [0]})
    if version == 0:
        del requested["election_type"]

    response = await call(active, ApiKey.ELECT_LEADERS, requested, version)

    assert (response["error_code"], results(response)) == (ErrorCode.NONE, {"a": {0: ErrorCode.NONE}})
    assert only(response, "replica_election_results", "partition_result")["error_message"] is None
    assert leader(active, 0) == 1
    assert active.waits_ms == [60_000]


async def test_unneeded_election_and_unknown_partition_are_errors() -> None:
    """Each partition is answered separately."""
    active = await with_another_leader()

    response = await call(active, ApiKey.ELECT_LEADERS, request({"a": [1, 7], "b": [0]}))

    assert results(response) == {
        "a": {1: ErrorCode.ELECTION_NOT_NEEDED, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        "b": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    }
    assert active.waits_ms == []


async def test_null_list_elects_all_and_returns_only_needed_elections() -> None:
    """KafkaApis omits ELECTION_NOT_NEEDED from the answer."""
    active = await with_another_leader()

    response = await call(active, ApiKey.ELECT_LEADERS, request(None))

    assert results(response) == {"a": {0: ErrorCode.NONE}}


async def test_unclean_election_elects_an_out_of_sync_replica() -> None:
    """KIP-460: the caller accepts the loss of acknowledged records."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.sync(TopicPartition("a", 0), (1,))
    active.brokers_are(broker(2))
    active.run(RepairPartitions())

    refused = await call(active, ApiKey.ELECT_LEADERS, request({"a": [0]}))
    response = await call(active, ApiKey.ELECT_LEADERS, request({"a": [0]}, UNCLEAN))

    assert results(refused) == {"a": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    assert results(response) == {"a": {0: ErrorCode.NONE}}
    assert leader(active, 0) == 2


async def test_unknown_election_type_is_refused() -> None:
    """ElectionType has two values."""
    active = await with_another_leader()

    response = await call(active, ApiKey.ELECT_LEADERS, request({"a": [0]}, election_type=5))

    assert (
        response["error_code"],
        results(response),
    ) == (ErrorCode.INVALID_REQUEST, {"a": {0: ErrorCode.INVALID_REQUEST}})
    assert active.submitted == []


async def test_duplicate_partition_is_elected_once() -> None:
    """ElectLeadersRequest.topicPartitions is a set."""
    active = await with_another_leader()

    await call(active, ApiKey.ELECT_LEADERS, request({"a": [0, 0]}))

    assert active.submitted == [ElectLeaders((TopicPartition("a", 0),))]


async def test_results_are_grouped_by_topic() -> None:
    """ReplicaElectionResult has the partitions of one topic."""
    active = await with_another_leader()
    await add_topic(active, "b", {0: (1,)})

    response = await call(active, ApiKey.ELECT_LEADERS, request({"b": [0], "a": [1]}))

    assert results(response) == {"b": {0: ErrorCode.ELECTION_NOT_NEEDED}, "a": {1: ErrorCode.ELECTION_NOT_NEEDED}}


async def test_standby_answers_version_0_for_each_partition() -> None:
    """Version 0 has no top-level error (ElectLeadersRequest.getErrorResponse)."""
    response = await call(None, ApiKey.ELECT_LEADERS, request({"a": [0]}), 0)

    assert results(response) == {"a": {0: ErrorCode.NOT_CONTROLLER}}


async def test_standby_answers_election_of_all_with_top_level_error() -> None:
    """There is no partition for the error."""
    response = await call(None, ApiKey.ELECT_LEADERS, request(None))

    assert (response["error_code"], results(response)) == (ErrorCode.NOT_CONTROLLER, {})


async def test_election_of_all_is_submitted_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One small request must not block the event loop in proportion to the cluster; the answer is that of one event."""
    monkeypatch.setattr(partitions, "MAX_PARTITIONS_PER_EVENT", 2)
    active = active_with(broker(1), broker(2))
    names = [f"t{number}" for number in range(5)]
    for name in names:
        await add_topic(active, name, {0: (1, 2)})
        active.cluster.columns.leader[active.row(TopicPartition(name, 0))] = 2
    await add_topic(active, "led", {0: (1, 2)})
    submitted: list[int] = []
    submit = active.submit

    async def noting(event: ElectLeaders) -> object:
        submitted.append(len(event.partitions or ()))
        return await submit(event)

    monkeypatch.setattr(active, "submit", noting)
    response = await call(active, ApiKey.ELECT_LEADERS, request(None))

    assert submitted == [2, 2, 1]
    assert results(response) == {name: {0: ErrorCode.NONE} for name in names}
    assert {int(active.cluster.columns.leader[active.row(TopicPartition(name, 0))]) for name in names} == {1}
