"""The state-change log: a line for each transition, with fields to search for, and a bound."""

import logging

import pytest

from controller_core.decisions.transition import apply
from controller_core.model.broker import Broker
from controller_core.model.changes import (
    BrokersObserved,
    Change,
    ControlledShutdownStarted,
    DeletionBlocked,
    DeletionStarted,
    ReplicaRemovalAnswered,
    RequestsToBrokers,
)
from controller_core.model.cluster import Cluster
from controller_core.shell.state_log import MAX_LINES_PER_CHANGE, log_change
from tests.controller_core.shell.zookeeper.vocabulary import read_change
from tests.controller_core.states import NewState, partition_states

STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


@pytest.fixture
def cluster() -> Cluster:
    """A topic of 60 partitions that broker 1 leads."""
    cluster = Cluster(1000, 9)
    apply(cluster, BrokersObserved((Broker(1, 101, ()), Broker(2, 102, ()))))
    apply(cluster, read_change(cluster, "topic orders " + " ".join(f"{number}=1,2" for number in range(60))))
    apply(cluster, read_change(cluster, "known " + " ".join(f"orders-{number}=1/0/1,2/0" for number in range(60))))
    return cluster


def logged(caplog: pytest.LogCaptureFixture, cluster: Cluster, change: Change) -> list[dict[str, object]]:
    """Log a change; returns level, words and fields of each line."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "steward.state_change"):
        log_change(cluster, change)
    return [
        {"level": record.levelname, "words": record.getMessage()}
        | {key: value for key, value in record.__dict__.items() if key not in STANDARD}
        for record in caplog.records
    ]


def states(*new: NewState) -> Change:
    """A change of states."""
    found = partition_states(new, RequestsToBrokers.LEADER_AND_ISR)
    assert found is not None
    return found


def test_a_partition_tells_what_was_and_what_is(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """It is logged before it is applied, so that what was is known still."""
    expected = {
        "level": "INFO",
        "words": "Partition state changed",
        "topic": "orders",
        "partition": 7,
        "leader_before": 1,
        "leader": 2,
        "leader_epoch": 1,
        "isr_before": (1, 2),
        "isr": (2,),
        "unclean": False,
    }
    assert logged(caplog, cluster, states(NewState(7, 2, 1, (2,)))) == [expected]


@pytest.mark.parametrize(
    "new", [NewState(7, -1, 1, (1,)), NewState(7, 2, 1, (2,), unclean=True)], ids=["nobody leads", "unclean (C7)"]
)
def test_what_somebody_has_to_look_at_is_a_warning(
    caplog: pytest.LogCaptureFixture, cluster: Cluster, new: NewState
) -> None:
    """A partition out of service, or acknowledged records that may be lost."""
    (line,) = logged(caplog, cluster, states(new))

    assert line["level"] == "WARNING"
    assert new.unclean == line["unclean"]


def test_large_changes_are_summed_up_after_a_bound(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """A broker's death with 100,000 leaders does not write 100,000 lines before anything else happens."""
    lines = logged(caplog, cluster, states(*(NewState(row, 2, 1, (2,)) for row in range(60))))

    assert len(lines) == MAX_LINES_PER_CHANGE + 1
    assert lines[-1] == {"level": "INFO", "words": "Further partition states changed", "more": 10}


def test_brokers_are_told_when_they_come_and_go_and_not_otherwise(
    caplog: pytest.LogCaptureFixture, cluster: Cluster
) -> None:
    """Every look at brokers ends in such a change."""
    come_and_gone = BrokersObserved((Broker(2, 102, ()), Broker(3, 103, ())))

    assert logged(caplog, cluster, come_and_gone) == [
        {"level": "INFO", "words": "Live brokers changed", "joined": [3], "left": [1]}
    ]
    assert logged(caplog, cluster, BrokersObserved(tuple(cluster.brokers.values()))) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("new made 0=1 1=2", {"words": "Topic added", "topic": "made", "origin": "requested", "partitions": 2}),
        ("partitions orders 60=1", {"words": "Partitions added", "topic": "orders", "added": 1}),
        ("move orders 0=2,1", {"words": "Reassignment started", "topic": "orders", "partitions": 1}),
        ("moved orders 0=1,2", {"words": "Reassignment finished", "topic": "orders", "partitions": 1}),
        ("queue a b", {"words": "Topic deletion queued", "topics": ["a", "b"]}),
        ("remove orders", {"words": "Topic removed", "topic": "orders"}),
    ],
)
def test_each_transition_has_its_line(
    caplog: pytest.LogCaptureFixture, cluster: Cluster, change: str, expected: dict[str, object]
) -> None:
    """In words and fields that a person can search for."""
    assert logged(caplog, cluster, read_change(cluster, change)) == [{"level": "INFO"} | expected]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (ControlledShutdownStarted(1), {"words": "Controlled shutdown of a broker started", "broker": 1}),
        (DeletionStarted("orders", {2: (0,), 1: (0,)}), {"words": "Topic deletion started", "brokers": [1, 2]}),
        (
            DeletionBlocked("orders", "brokers [1] are away"),
            {"words": "Topic deletion is waiting", "reason": "brokers [1] are away"},
        ),
    ],
)
def test_what_lives_in_memory_alone_has_its_line_too(
    caplog: pytest.LogCaptureFixture, cluster: Cluster, change: Change, expected: dict[str, object]
) -> None:
    """Who asks why something waits looks here."""
    (line,) = logged(caplog, cluster, change)

    assert expected.items() <= line.items()


def test_what_is_no_transition_has_no_line(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """Looks, answers and blocks of ids."""
    assert logged(caplog, cluster, read_change(cluster, "producer-ids 1 0 999")) == []
    assert logged(caplog, cluster, ReplicaRemovalAnswered("orders", 0, 1)) == []
