"""State-change log: a line for each transition, with fields to search for, and a limit."""

import logging

import pytest

from controller_core.model import Broker, Cluster
from controller_core.model.changes import Change, RequestsToBrokers
from controller_core.model.quorum_changes import BrokerChanged, BrokerRegistered
from controller_core.model.zookeeper_changes import (
    BrokersObserved,
    ControlledShutdownStarted,
    DeletionBlocked,
    DeletionStarted,
    ReplicaRemovalAnswered,
)
from controller_core.shell.state_log import MAX_LINES_PER_CHANGE, log_change
from controller_core.zookeeper_mode.transitions import apply
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


def test_a_partitions_line_has_the_old_and_the_new_state(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """It is logged before the change is applied."""
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
    "new", [NewState(7, -1, 1, (1,)), NewState(7, 2, 1, (2,), unclean=True)], ids=["no leader", "unclean (C7)"]
)
def test_offline_partitions_and_unclean_elections_are_warnings(
    caplog: pytest.LogCaptureFixture, cluster: Cluster, new: NewState
) -> None:
    """A partition out of service, or acknowledged records that may be lost."""
    (line,) = logged(caplog, cluster, states(new))

    assert line["level"] == "WARNING"
    assert new.unclean == line["unclean"]


def test_large_changes_are_summarised_after_a_limit(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """The failure of a broker with 100,000 leaders does not write 100,000 lines before anything else happens."""
    lines = logged(caplog, cluster, states(*(NewState(row, 2, 1, (2,)) for row in range(60))))

    assert len(lines) == MAX_LINES_PER_CHANGE + 1
    assert lines[-1] == {"level": "INFO", "words": "Further partition states changed", "more": 40}


def test_only_changes_of_the_live_brokers_are_logged(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """Every poll of the brokers ends in such a change."""
    changed_brokers = BrokersObserved((Broker(2, 102, ()), Broker(3, 103, ())))

    assert logged(caplog, cluster, changed_brokers) == [
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
    """With fields to search for."""
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
def test_transitions_in_memory_have_a_line_as_well(
    caplog: pytest.LogCaptureFixture, cluster: Cluster, change: Change, expected: dict[str, object]
) -> None:
    """They explain why an operation waits."""
    (line,) = logged(caplog, cluster, change)

    assert expected.items() <= line.items()


def test_other_changes_have_no_line(caplog: pytest.LogCaptureFixture, cluster: Cluster) -> None:
    """Polls, answers and blocks of ids."""
    assert logged(caplog, cluster, read_change(cluster, "producer-ids 1 0 999")) == []
    assert logged(caplog, cluster, ReplicaRemovalAnswered("orders", 0, 1)) == []


def test_each_change_of_a_brokers_registration_in_kraft_mode_has_a_line(
    caplog: pytest.LogCaptureFixture, cluster: Cluster
) -> None:
    """A broker that is fenced is a warning, also when it leaves by a controlled shutdown. An unchanged incarnation has no line."""
    both = {"broker": 1, "broker_epoch": 101}

    assert logged(caplog, cluster, BrokerRegistered(Broker(3, 7, ()))) == [
        {"level": "INFO", "words": "Broker registered", "broker": 3, "broker_epoch": 7}
    ]
    assert logged(caplog, cluster, BrokerRegistered(Broker(1, 101, ()))) == []
    assert logged(caplog, cluster, BrokerChanged(1, 101, fenced=True)) == [
        {"level": "WARNING", "words": "Broker fenced", **both}
    ]
    assert logged(caplog, cluster, BrokerChanged(1, 101, fenced=False)) == [
        {"level": "INFO", "words": "Broker unfenced", **both}
    ]
    assert logged(caplog, cluster, BrokerChanged(1, 101, in_controlled_shutdown=True)) == [
        {"level": "INFO", "words": "Controlled shutdown of a broker started", "broker": 1}
    ]
