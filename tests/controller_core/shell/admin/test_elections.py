"""ElectLeaders (KIP-183, KIP-460, KafkaApis.handleElectLeaders)."""

import pytest

from controller_core.model.events import ControlledShutdown, ElectLeaders, Heal
from controller_core.model.ids import TopicPartition
from controller_core.shell.admin import elections
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, ask, only
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker

PREFERRED, UNCLEAN = 0, 1


def asking(topics: dict[str, list[int]] | None, election_type: int = PREFERRED, timeout_ms: int = 60_000) -> Body:
    """A request."""
    named = None if topics is None else [{"topic": name, "partitions": ids} for name, ids in topics.items()]
    return {"election_type": election_type, "topic_partitions": named, "timeout_ms": timeout_ms}


def results(response: Body) -> dict[str, dict[int, int]]:
    """Error codes by topic and partition."""
    return {
        topic["topic"]: {one["partition_id"]: one["error_code"] for one in topic["partition_result"]}
        for topic in response["replica_election_results"]
    }


async def with_another_leader() -> FakeActive:
    """Topic a: partition 0 is led by broker 2 while 1 is preferred and in sync, partition 1 by its preferred one."""
    active = await active_with_topic("a", {0: (1, 2), 1: (3, 2)})
    active.run(ControlledShutdown(1))
    registered = [broker(2), broker(3)]
    active.brokers_are(*registered)
    active.brokers_are(broker(1), *registered)
    active.sync(TopicPartition("a", 0), (2, 1))
    assert leader(active, 0) == 2
    return active


def leader(active: FakeActive, partition: int) -> int:
    """Who leads a partition of topic a."""
    return int(active.cluster.columns.leader[active.row(TopicPartition("a", partition))])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_preferred_leader_is_back(version: int) -> None:
    """Version 0 knows this election alone and has no field for it."""
    active = await with_another_leader()
    asked = asking({"a": [0]})
    if version == 0:
        del asked["election_type"]

    response = await ask(active, ApiKey.ELECT_LEADERS, asked, version)

    assert (response["error_code"], results(response)) == (ErrorCode.NONE, {"a": {0: ErrorCode.NONE}})
    assert only(response, "replica_election_results", "partition_result")["error_message"] is None
    assert leader(active, 0) == 1
    assert active.waits_ms == [60_000]


async def test_what_needs_no_election_or_is_not_there_is_said() -> None:
    """Each partition stands on its own."""
    active = await with_another_leader()

    response = await ask(active, ApiKey.ELECT_LEADERS, asking({"a": [1, 7], "b": [0]}))

    assert results(response) == {
        "a": {1: ErrorCode.ELECTION_NOT_NEEDED, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        "b": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    }
    assert active.waits_ms == []


async def test_no_list_means_all_and_tells_of_those_that_needed_it() -> None:
    """KafkaApis leaves ELECTION_NOT_NEEDED out of the answer."""
    active = await with_another_leader()

    response = await ask(active, ApiKey.ELECT_LEADERS, asking(None))

    assert results(response) == {"a": {0: ErrorCode.NONE}}


async def test_an_unclean_election_takes_a_replica_out_of_sync() -> None:
    """KIP-460: the caller accepts that acknowledged records may be lost."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.sync(TopicPartition("a", 0), (1,))
    active.brokers_are(broker(2))
    active.run(Heal())

    refused = await ask(active, ApiKey.ELECT_LEADERS, asking({"a": [0]}))
    response = await ask(active, ApiKey.ELECT_LEADERS, asking({"a": [0]}, UNCLEAN))

    assert results(refused) == {"a": {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}}
    assert results(response) == {"a": {0: ErrorCode.NONE}}
    assert leader(active, 0) == 2


async def test_an_unknown_type_of_election_elects_nobody() -> None:
    """ElectionType knows two."""
    active = await with_another_leader()

    response = await ask(active, ApiKey.ELECT_LEADERS, asking({"a": [0]}, election_type=5))

    assert (
        response["error_code"],
        results(response),
    ) == (ErrorCode.INVALID_REQUEST, {"a": {0: ErrorCode.INVALID_REQUEST}})
    assert active.submitted == []


async def test_a_partition_that_stands_twice_is_elected_once() -> None:
    """ElectLeadersRequest.topicPartitions is a set."""
    active = await with_another_leader()

    await ask(active, ApiKey.ELECT_LEADERS, asking({"a": [0, 0]}))

    assert active.submitted == [ElectLeaders((TopicPartition("a", 0),))]


async def test_results_are_grouped_by_topic() -> None:
    """ReplicaElectionResult holds the partitions of one topic."""
    active = await with_another_leader()
    await add_topic(active, "b", {0: (1,)})

    response = await ask(active, ApiKey.ELECT_LEADERS, asking({"b": [0], "a": [1]}))

    assert results(response) == {"b": {0: ErrorCode.ELECTION_NOT_NEEDED}, "a": {1: ErrorCode.ELECTION_NOT_NEEDED}}


async def test_without_a_tenure_version_0_says_so_for_each_partition() -> None:
    """It has no place for an error at the top (ElectLeadersRequest.getErrorResponse)."""
    response = await ask(None, ApiKey.ELECT_LEADERS, asking({"a": [0]}), 0)

    assert results(response) == {"a": {0: ErrorCode.NOT_CONTROLLER}}


async def test_without_a_tenure_an_election_of_all_is_refused_at_the_top() -> None:
    """There is no partition to say it for."""
    response = await ask(None, ApiKey.ELECT_LEADERS, asking(None))

    assert (response["error_code"], results(response)) == (ErrorCode.NOT_CONTROLLER, {})


async def test_all_partitions_are_elected_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One small request must not hold the event loop for as long as the cluster is large; the answer is as for one event."""
    monkeypatch.setattr(elections, "MAX_PARTITIONS_PER_EVENT", 2)
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
    response = await ask(active, ApiKey.ELECT_LEADERS, asking(None))

    assert submitted == [2, 2, 1]
    assert results(response) == {name: {0: ErrorCode.NONE} for name in names}
    assert {int(active.cluster.columns.leader[active.row(TopicPartition(name, 0))]) for name in names} == {1}
