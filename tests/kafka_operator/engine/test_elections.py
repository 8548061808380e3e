"""Elections: selected partitions, requests, and reported results (per partition; unclean with acceptDataLoss)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_operator.admin.requests import elect_leaders_request, election_codes, failed_elections
from kafka_operator.decide.elections.election import (
    TRY_FOR_S,
    Elect,
    ElectionView,
    decide_election,
    decide_election_unavailable,
)
from kafka_operator.decide.elections.election_result import MAX_RESULTS, result_of, select
from kafka_operator.decide.kafka.observed import NO_LEADER, Failure, KafkaPartition, KafkaTopic, Unavailable
from kafka_operator.decide.tenants.tenancy import Refusal
from kafka_operator.resources.election import Counts, Election, ElectionState, ElectionType, Result, read_election
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.steps import Done, Retry, WriteStatus
from tests.kafka_operator.makers import CREATED, DELETED, NOW, raw_cluster, raw_election, ready
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time

NOT_IN_SYNC = Failure(80, "PREFERRED_LEADER_NOT_AVAILABLE", "The preferred leader is not in sync.")


def election(*, deleted: bool = False, **spec: Any) -> Election:
    """An Election as the API server returns it."""
    raw = raw_election(**(spec or {"topics": ["orders"]}))
    raw["metadata"] |= {"uid": "uid-e", "resourceVersion": "9", "generation": 1, "creationTimestamp": CREATED}
    if deleted:
        raw["metadata"]["deletionTimestamp"] = DELETED
    return read_election(raw)


def seen(*leaders: int, name: str = "orders", replicas: tuple[int, ...] = (1, 2, 3)) -> dict[str, KafkaTopic]:
    """A topic whose partitions have these leaders."""
    partitions = tuple(KafkaPartition(index, leader, replicas) for index, leader in enumerate(leaders))
    return {name: KafkaTopic(name, None, partitions)}


def view(topics: dict[str, KafkaTopic], **fields: Any) -> ElectionView:
    """Input of a decision."""
    return ElectionView(now=NOW, topics=topics, **fields)


def after(item: Election, step: object) -> Election:
    """The Election with the status that a step writes, as it is read back."""
    assert isinstance(step, WriteStatus), step
    raw = raw_election(topics=["orders"])
    raw["metadata"] |= {"uid": "uid-e", "resourceVersion": "9", "generation": 1, "creationTimestamp": CREATED}
    raw["status"] = {name: value for name, value in step.status.to_patch().items() if value is not None}
    assert step.status == read_election(raw).status, "the status is parsed as it was written"
    return replace(item, status=step.status)


@pytest.mark.parametrize(
    ("spec", "selected", "needing"),
    [
        ({"topics": ["orders"]}, [0, 1, 2], [1, 2]),
        ({"partitions": [{"topic": "orders", "partition": 2}]}, [2], [2]),
        ({"brokers": [1]}, [0, 1, 2], [1, 2]),
        ({"brokers": [2]}, [], []),
        ({"all": True}, [0, 1, 2], [1, 2]),
        ({"brokers": [2], "type": "Unclean", "acceptDataLoss": True}, [0, 1, 2], [2]),
        ({"all": True, "type": "Unclean", "acceptDataLoss": True}, [0, 1, 2], [2]),
    ],
)
def test_selected_partitions_and_those_that_need_an_election(
    spec: dict[str, Any], selected: list[int], needing: list[int]
) -> None:
    """`brokers` selects partitions by their preferred leader, or by their replicas if unclean. Unclean elections are for partitions without leader."""
    chosen = select(election(**spec), seen(1, 2, NO_LEADER))

    assert len(selected) == chosen.selected
    assert needing == [item.index for item in chosen.needing]


def test_topics_of_other_elections_are_not_selected() -> None:
    """A batch reads the topics of all its Elections at once."""
    chosen = select(election(topics=["orders"]), seen(2) | seen(2, name="payments"))

    assert chosen.needing == (Partition("orders", 0),)


def test_an_election_is_recorded_requested_and_evaluated() -> None:
    """First Running with the partitions that need it, then the request, then the results from the current leaders."""
    fresh = election()
    running_now = after(fresh, decide_election(fresh, view(seen(1, 2, 2))))
    assert running_now.status.state is ElectionState.RUNNING
    assert running_now.status.counts == Counts(selected=3, needed=2)
    assert [result.partition.index for result in running_now.status.results] == [1, 2]

    wanted = (Partition("orders", 1), Partition("orders", 2))
    assert decide_election(running_now, view(seen(1, 2, 2))) == Elect(ElectionType.PREFERRED, wanted)

    ended = after(running_now, decide_election(running_now, view(seen(1, 1, 1), asked=True)))
    assert ended.status.state is ElectionState.COMPLETED
    assert ended.status.counts == Counts(3, 2, 2, 0)
    assert [Result(partition, "ELECTED", 1) for partition in wanted] == list(ended.status.results)
    assert ready(ended.status.conditions) == ("True", "Completed")
    assert decide_election(ended, view(seen(2, 2, 2))) == Done()


def test_a_lost_response_does_not_change_the_result() -> None:
    """Killed after the request: the next poll finds no partition that needs an election, and reports the same."""
    fresh = election()
    running_now = after(fresh, decide_election(fresh, view(seen(2, 2))))

    assert decide_election(running_now, view(seen(1, 1))) == decide_election(running_now, view(seen(1, 1), asked=True))


def test_an_election_that_is_not_needed_completes_at_once() -> None:
    """ELECTION_NOT_NEEDED for all partitions."""
    ended = after(election(), decide_election(election(), view(seen(1, 1))))

    assert ended.status.state is ElectionState.COMPLETED
    assert ended.status.counts == Counts(selected=2)
    assert ended.status.to_patch()["counts"]["notNeeded"] == 2


def test_a_temporary_failure_is_retried_for_a_while_and_then_reported() -> None:
    """A preferred leader that is catching up. PartlyFailed if other leaders were elected, Failed if none was."""
    fresh = election()
    running_now = after(fresh, decide_election(fresh, view(seen(2, 2))))
    failures = {Partition("orders", 1): NOT_IN_SYNC}
    asked = view(seen(1, 2), asked=True, failures=failures)
    assert isinstance(decide_election(running_now, asked), Retry)

    ended = after(running_now, decide_election(running_now, replace(asked, waited_s=TRY_FOR_S)))
    assert ended.status.state is ElectionState.PARTLY_FAILED
    assert ended.status.counts == Counts(2, 2, 1, 1)
    assert [result.result for result in ended.status.results] == ["PREFERRED_LEADER_NOT_AVAILABLE", "ELECTED"]
    message = ended.status.conditions[0].message
    assert "1 of 2 partitions that needed an election have an elected leader." in message
    assert "Not elected: orders-1: PREFERRED_LEADER_NOT_AVAILABLE." in message

    one = after(fresh, decide_election(fresh, view(seen(2))))
    none_elected = view(seen(2), asked=True, failures={Partition("orders", 0): NOT_IN_SYNC}, waited_s=TRY_FOR_S)
    failed = after(one, decide_election(one, none_elected))
    assert failed.status.state is ElectionState.FAILED
    assert ready(failed.status.conditions) == ("False", "PreferredLeaderNotAvailable")


def test_a_missing_topic_is_awaited_for_a_while_and_then_reported() -> None:
    """It may be applied together with the Election. Leaders of the other topics are elected in any case."""
    item = election(topics=["orders", "gone"])
    step = decide_election(item, view(seen(2)))
    pending = after(item, step)
    assert ready(pending.status.conditions) == ("False", "UnknownTopic")
    assert isinstance(decide_election(pending, view(seen(2))), Retry)

    running_now = after(pending, decide_election(pending, view(seen(2), waited_s=TRY_FOR_S)))
    ended = after(running_now, decide_election(running_now, view(seen(1), asked=True, waited_s=TRY_FOR_S)))
    assert ended.status.state is ElectionState.PARTLY_FAILED
    assert {"topic": "gone", "result": "UNKNOWN_TOPIC_OR_PARTITION"}.items() <= ended.status.results[
        0
    ].to_json().items()
    assert "partition" not in ended.status.results[0].to_json()

    alone = after(election(topics=["gone"]), decide_election(election(topics=["gone"]), view({}, waited_s=TRY_FOR_S)))
    assert ready(alone.status.conditions) == ("False", "UnknownTopic")
    assert alone.status.state is ElectionState.FAILED
    nothing = decide_election(election(brokers=[9]), view(seen(1)))
    assert ready(after(election(brokers=[9]), nothing).status.conditions) == ("False", "NothingSelected")


@pytest.mark.shows("E9")
def test_an_unclean_election_needs_consent_and_reports_the_loss() -> None:
    """CEL checks the consent at apply; this check covers objects that were stored without CEL."""
    without = election(type="Unclean", topics=["orders"])
    assert ready(after(without, decide_election(without, view(seen(-1)))).status.conditions) == (
        "False",
        "ConsentMissing",
    )

    item = election(type="Unclean", acceptDataLoss=True, topics=["orders"])
    running_now = after(item, decide_election(item, view(seen(NO_LEADER, 2))))
    assert decide_election(running_now, view(seen(NO_LEADER, 2))) == Elect(
        ElectionType.UNCLEAN, (Partition("orders", 0),)
    )
    ended = after(running_now, decide_election(running_now, view(seen(3, 2), asked=True)))
    assert ended.status.results[0] == Result(Partition("orders", 0), "ELECTED", 3)
    assert "are lost" in ended.status.conditions[0].message


def test_results_are_bounded_and_failures_come_first() -> None:
    """The counts include all partitions."""
    partitions = [Partition("orders", index) for index in range(2_000)]
    failures = dict.fromkeys(partitions[1_990:], NOT_IN_SYNC)

    results = result_of(partitions, failures, {})

    assert len(results) == MAX_RESULTS
    assert partitions[1_990:] == [result.partition for result in results[:10]]
    assert partitions[0] == results[10].partition
    wordy = result_of([partitions[0]], {partitions[0]: Failure(80, "N" * 100, "w" * 5_000)}, {})
    assert (len(wordy[0].result), len(wordy[0].message or "")) == (64, 1_024)


def test_an_election_waits_for_its_cluster_and_for_permission() -> None:
    """Unreachable cluster: Ready=Unknown, retried. Not allowed: reported, Failed after a while."""
    away = Unavailable("ClusterUnreachable", "No broker answers.")
    pending = after(election(), decide_election_unavailable(election(), away, NOW, 0))
    assert pending.status.state is ElectionState.PENDING
    assert ready(pending.status.conditions) == ("Unknown", "ClusterUnreachable")
    assert isinstance(decide_election_unavailable(pending, away, NOW, 0), Retry)
    assert isinstance(decide_election_unavailable(election(), replace(away, definite=False), NOW, 1), Retry)

    refused = view(seen(2), refusal=Refusal("NotAllowed", "Cluster a/b does not allow it."))
    reported = after(election(), decide_election(election(), refused))
    assert reported.status.state is ElectionState.PENDING
    failed = after(reported, decide_election(reported, replace(refused, waited_s=TRY_FOR_S)))
    assert failed.status.state is ElectionState.FAILED


def test_a_deleted_election_is_ignored() -> None:
    """It has no finalizer."""
    assert decide_election(election(deleted=True), view(seen(2))) == Done()
    assert decide_election_unavailable(election(deleted=True), Unavailable("x", "y"), NOW, 0) == Done()


def test_the_request_groups_partitions_by_topic_and_the_response_is_parsed() -> None:
    """KIP-460; ELECTION_NOT_NEEDED is no failure."""
    wanted = Elect(ElectionType.UNCLEAN, (Partition("a", 0), Partition("a", 2), Partition("b", 1)))
    assert elect_leaders_request(wanted, 8_000).body == {
        "election_type": 1,
        "topic_partitions": [{"topic": "a", "partitions": [0, 2]}, {"topic": "b", "partitions": [1]}],
        "timeout_ms": 8_000,
    }

    def result(partition_id: int, code: int) -> dict[str, Any]:
        return {"partition_id": partition_id, "error_code": code, "error_message": None}

    response = {
        "error_code": 0,
        "replica_election_results": [
            {"topic": "a", "partition_result": [result(0, 0), result(2, 84)]},
            {"topic": "b", "partition_result": [result(1, 80)]},
        ],
    }
    assert [failure.name for failure in failed_elections(response).values()] == ["PREFERRED_LEADER_NOT_AVAILABLE"]
    assert election_codes(response) == [0, 0, 84, 80]


@in_virtual_time
async def test_preferred_leaders_are_elected_with_two_status_writes_and_a_mark() -> None:
    """One request, two writes of the status (Running, Completed) and the mark between them, none afterwards (O1, O7)."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2), (2, 1)])
        world.kafka.leaders[Partition("orders", 0)] = 2
        key = world.kube.apply(raw_election(brokers=[1]))

        await world.until(lambda: world.kube.ready(key)[0] == "True", 5)

        assert world.kafka.elections == [Elect(ElectionType.PREFERRED, (Partition("orders", 0),))]
        assert world.kube.writes.count(str(key)) == 3
        assert [event.reason for event in world.kube.events] == ["Running", "Completed"]
        assert not world.kube.objects[key]["metadata"].get("finalizers")
        await world.run(300)
        assert world.kube.writes.count(str(key)) == 3


@in_virtual_time
async def test_another_namespace_may_elect_only_topics_that_it_may_name() -> None:
    """allowedNamespaces: a tenant cannot change topics of others."""
    async with running(cluster=False) as world:
        world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": ["team"], "topicNames": ["team-*"]}]))
        world.kafka.add("team-a", [(1, 2)])
        world.kafka.add("orders", [(1, 2)])
        world.kafka.leaders |= {Partition("team-a", 0): 2, Partition("orders", 0): 2}
        keys = []
        for name, spec in (("own", {"topics": ["team-a"]}), ("other", {"topics": ["orders"]}), ("all", {"all": True})):
            raw = raw_election(name, **spec)
            raw["metadata"]["namespace"] = "team"
            raw["spec"]["clusterRef"]["namespace"] = "shop"
            keys.append(world.kube.apply(raw))
        await world.until(
            lambda: all(
                world.kube.objects[key].get("status", {}).get("state") in {"Completed", "Failed"} for key in keys
            )
        )

        assert [world.kube.ready(key)[1] for key in keys] == ["Completed", "NameNotAllowed", "NotAllowed"]
        assert [asked.partitions for asked in world.kafka.elections] == [(Partition("team-a", 0),)]
