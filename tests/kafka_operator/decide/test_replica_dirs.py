"""Progress of replicas that move between the log directories of their brokers (KIP-113), and requests to brokers."""

from __future__ import annotations

import pytest

from kafka_operator.admin import brokers
from kafka_operator.decide.kafka.layout import Layout
from kafka_operator.decide.kafka.log_dirs import LogDir
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition, KafkaTopic
from kafka_operator.decide.kafka.replica_dirs import (
    DirectoryLogs,
    ReplicaDir,
    replica_dirs_of,
    targets_of,
    targets_to_cancel,
)
from kafka_operator.decide.plans.goals import Found
from kafka_operator.decide.plans.log_dir_goal import plan_for_log_dirs
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_document import DocumentError, digest_of, read_document, write_document
from kafka_operator.decide.plans.plan_packing import Recorded, packed, unpack
from kafka_operator.decide.reassignments.partition_progress import (
    CurrentPartitions,
    find_progress,
    find_rollback_progress,
)
from kafka_operator.resources.reassignment import Assignment, Partition, ReassignmentStatus
from kafka_operator.resources.reassignment_records import LeftOut
from kafka_operator.resources.reassignment_terms import Goal
from kafka_wire import ApiKey

P0, P1 = Partition("t", 0), Partition("t", 1)
PLAN = Assignment(P0, (1, 2), ("/b", "any"))
BASE = Assignment(P0, (1, 2), ("/a", "any"))
GIB = 2**30
AWAY = Failure(8, "BROKER_NOT_AVAILABLE", "Broker 2 does not answer.")


def group(found: ReplicaDir | None, *, handed_over: int = 0, handing_over: int = 0, back: bool = False) -> str:
    """Return the group of partition 0, whose replica on broker 1 has these directories."""
    current = CurrentPartitions(
        {"t": KafkaTopic("t", None, (KafkaPartition(0, 1, (1, 2), (1, 2)),))},
        dirs={} if found is None else {P0: {1: found}},
    )
    status = ReassignmentStatus(handed_over=handed_over, handing_over=handing_over)
    if back:
        progress = find_rollback_progress(Recorded((BASE,), (PLAN,)), status, current)
    else:
        progress = find_progress(Recorded((PLAN,), (BASE,)), status, current)
    names = ("arrived", "moving", "due", "later", "lost", "stray", "gone")
    return next(name for name in names if getattr(progress, name))


@pytest.mark.parametrize(
    ("found", "handed_over", "expected"),
    [
        (ReplicaDir("/a"), 0, "due"),
        (ReplicaDir("/a", "/b", 5), 0, "moving"),
        (ReplicaDir("/b"), 1, "arrived"),
        (ReplicaDir("/a"), 1, "lost"),
        (ReplicaDir("/c"), 1, "stray"),
        (ReplicaDir("/a", "/c", 5), 1, "stray"),
        (None, 0, "due"),
        (None, 1, "moving"),
    ],
)
def test_directories_show_how_far_a_move_is(found: ReplicaDir | None, handed_over: int, expected: str) -> None:
    """A future log in the planned directory is a move in progress; of a broker that does not answer nothing is concluded."""
    assert group(found, handed_over=handed_over, handing_over=1) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (ReplicaDir("/b"), "later"),
        (ReplicaDir("/c"), "later"),
        (ReplicaDir("/a", "/b", 5), "stray"),
        (ReplicaDir("/b", "/a", 5), "moving"),
        (ReplicaDir("/a"), "arrived"),
    ],
)
def test_a_rollback_returns_a_replica_from_wherever_it_is(found: ReplicaDir, expected: str) -> None:
    """A move that still goes on forward is cancelled first."""
    assert group(found, back=True) == expected


def test_a_cancelled_move_names_the_current_directory() -> None:
    """ReplicaManager.alterReplicaLogDirs deletes the future log of another directory."""
    dirs = {P0: {1: ReplicaDir("/a", "/b", 5), 2: ReplicaDir("/a")}}

    assert targets_to_cancel([PLAN], dirs) == {1: {P0: "/a"}}
    assert targets_of([PLAN], dirs) == {}
    assert targets_of([PLAN], {P0: {1: ReplicaDir("/a")}}) == {1: {P0: "/b"}}


def directory(path: str, future: int | None = None, current: int | None = None) -> dict[str, object]:
    """A directory of a DescribeLogDirs response with a log of partition 0 and a future log of it."""
    logs = [
        {"partition_index": 0, "partition_size": size, "offset_lag": 0, "is_future_key": is_future}
        for size, is_future in ((current, False), (future, True))
        if size is not None
    ]
    topics = [{"name": "t", "partitions": logs}]
    return {"error_code": 0, "log_dir": path, "topics": topics, "total_bytes": 100, "usable_bytes": 60}


def test_a_broker_shows_current_and_future_logs() -> None:
    """DescribeLogDirs (KIP-113) marks a future log by is_future_key."""
    response = {"error_code": 0, "results": [directory("/a", current=9), directory("/b", future=4)]}

    found = brokers.replica_dirs_of(response)

    assert replica_dirs_of({1: found, 2: AWAY}) == {P0: {1: ReplicaDir("/a", "/b", 4)}}


def test_a_request_names_each_directory_with_its_partitions() -> None:
    """AlterReplicaLogDirs goes to the broker whose replicas move."""
    request = brokers.alter_log_dirs_request({P0: "/b", P1: "/b"})
    response = {
        "results": [
            {
                "topic_name": "t",
                "partitions": [{"partition_index": 0, "error_code": 57}, {"partition_index": 1, "error_code": 0}],
            }
        ]
    }

    assert request.key == ApiKey.ALTER_REPLICA_LOG_DIRS
    assert request.body == {"dirs": [{"path": "/b", "topics": [{"name": "t", "partitions": [0, 1]}]}]}
    assert brokers.refused_log_dirs(response).keys() == {P0}


def test_a_plan_with_directories_has_a_digest_of_its_own_and_is_stored_whole() -> None:
    """Approval is for the directories, too; a user's plan cannot choose them."""
    recorded = Recorded((PLAN,), (BASE,))
    raws = [{"metadata": {"name": "p"}, "binaryData": data} for data in packed(recorded)]

    assert unpack(raws) == recorded
    assert len({digest_of([PLAN]), digest_of([BASE]), digest_of([Assignment(P0, (1, 2))])}) == 3
    with pytest.raises(DocumentError, match="balanceLogDirs"):
        read_document(write_document([PLAN], None))


def layout(partitions: int = 3) -> Layout:
    """A topic with replicas on brokers 1 and 2."""
    held = tuple(KafkaPartition(index, 1, (1, 2), (1, 2)) for index in range(partitions))
    return Layout({"t": KafkaTopic("t", None, held)}, {1: None, 2: None})


def disk(path: str, used: int, sizes: dict[int, int], **flags: bool) -> DirectoryLogs:
    """A directory on a volume of 1000 GiB that has logs of these partitions; sizes are in GiB."""
    logs = {Partition("t", index): size * GIB for index, size in sizes.items()}
    return DirectoryLogs(LogDir(path, total_bytes=1000 * GIB, usable_bytes=(1000 - used) * GIB, **flags), logs)


UNEVEN = (disk("/a", 700, {0: 300, 1: 100, 2: 50}), disk("/b", 100, {}))


def test_each_broker_is_levelled_for_itself() -> None:
    """Only the replicas of the uneven broker move; the others stay in any directory."""
    found = {1: UNEVEN, 2: (disk("/a", 450, {0: 300}), disk("/b", 450, {1: 100, 2: 50}))}

    plan = plan_for_log_dirs(Goal(balance_log_dirs=True), layout(), found)

    assert isinstance(plan, Found)
    assert plan.plan == (PLAN,)
    assert plan.base == (BASE,)
    assert plan.copied == 300 * GIB
    assert [item.bytes for item in plan.log_dirs] == [(450 * GIB, 150 * GIB), (0, 300 * GIB)]


def test_a_directory_that_failed_and_a_broker_that_is_away_are_left_out() -> None:
    """A replica whose future log exists is moved by another client."""
    moving = DirectoryLogs(UNEVEN[1].directory, {}, {P0: 10})
    found = {1: (UNEVEN[0], moving, disk("/c", 0, {}, online=False)), 2: AWAY}

    plan = plan_for_log_dirs(Goal(balance_log_dirs=True), layout(), found)

    assert isinstance(plan, Found)
    assert {path for item in plan.plan for path in item.log_dirs} == {"/b", "any"}
    assert P0 not in {item.partition for item in plan.plan}
    assert plan.unreached[0] == "broker 2: Broker 2 does not answer."


def test_a_limit_of_bytes_cuts_the_plan() -> None:
    """The rest is reported; a limit below the first replica is a problem."""
    cut = plan_for_log_dirs(Goal(balance_log_dirs=True, max_bytes_moved=299 * GIB), layout(), {1: UNEVEN})
    even = plan_for_log_dirs(
        Goal(balance_log_dirs=True, topics=("t",), max_bytes_moved=300 * GIB), layout(), {1: UNEVEN, 2: UNEVEN}
    )

    assert isinstance(cut, PlanProblem)
    assert cut.reason == "NoRoomInLimit"
    assert isinstance(even, Found)
    assert even.left_out == LeftOut(1, 300 * GIB)


def test_no_broker_that_answers_is_a_problem_that_may_pass() -> None:
    """Without the right to describe the cluster, each broker refuses."""
    refused = Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")

    problem = plan_for_log_dirs(Goal(balance_log_dirs=True), layout(), {1: refused})

    assert isinstance(problem, PlanProblem)
    assert (problem.reason, problem.may_pass) == ("LogDirsUnknown", True)
