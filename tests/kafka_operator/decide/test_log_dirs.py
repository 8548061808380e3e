"""Log directories of brokers in the status of a Cluster (JBOD, KIP-112)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator.admin.brokers import log_dirs_of
from kafka_operator.decide.clusters.cluster import ClusterSnapshot, decide_cluster
from kafka_operator.decide.kafka.log_dirs import MAX_SHOWN, BrokerLogDirs, LogDir, summarize
from kafka_operator.decide.kafka.observed import Failure, ObservedCluster
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.log_dirs import NO_PROBLEMS, Directory, LogDirsStatus, read_log_dirs
from kafka_wire import Body
from reconciler.decide.conditions import condition_of
from reconciler.decide.steps import ResourceEvent, WriteStatus
from tests.kafka_operator.makers import NOW, cluster

GIB = 1 << 30
RESTARTING = Failure(8, "BROKER_NOT_AVAILABLE", "Broker 2 does not respond.")
NOT_ALLOWED = Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")


def disk(path: str, used_percent: int) -> LogDir:
    """A directory on a volume of its own."""
    return LogDir(path, total_bytes=100 * GIB, usable_bytes=(100 - used_percent) * GIB)


@pytest.mark.shows("F44")
def test_a_directory_with_an_error_of_its_own_is_offline() -> None:
    """ReplicaManager.describeLogDirs answers KAFKA_STORAGE_ERROR for it; sizes from version 4 on, cordons from version 5 on."""

    def described(path: str, error_code: int = 0, **fields: int | bool) -> Body:
        return {"error_code": error_code, "log_dir": path, "topics": [], **fields}

    results = [described("/a", 56), described("/b", total_bytes=10, usable_bytes=4, is_cordoned=True), described("/c")]

    assert log_dirs_of({"error_code": 0, "results": results}) == (
        LogDir("/a", online=False),
        LogDir("/b", total_bytes=10, usable_bytes=4, cordoned=True),
        LogDir("/c"),
    )
    assert isinstance(log_dirs_of({"error_code": 31, "results": []}), Failure)


@pytest.mark.shows("F44")
def test_uneven_directories_are_the_fullest_and_the_emptiest_of_a_broker() -> None:
    """On volumes of their own; directories on one volume have the same share."""
    found = {
        1: (disk("/a", 40), disk("/b", 90), disk("/c", 20)),
        2: (disk("/a", 50), disk("/b", 69)),
        3: (disk("/a", 95),),
        4: (LogDir("/a"), LogDir("/b")),
    }

    assert summarize(found, NO_PROBLEMS).uneven == (Directory(1, "/b", 90), Directory(1, "/c", 20))


def test_a_broker_that_does_not_answer_keeps_what_was_shown() -> None:
    """And one that is not live is left out."""
    before = LogDirsStatus(offline=(Directory(2, "/b"), Directory(9, "/b")))

    assert summarize({1: (LogDir("/a"),), 2: RESTARTING}, before) == LogDirsStatus(offline=(Directory(2, "/b"),))


def test_the_status_is_bounded_and_read_as_it_was_written() -> None:
    """A status has a limit of size."""
    found = {broker: (LogDir("/a", online=False, cordoned=True),) for broker in range(MAX_SHOWN + 1)}

    shown = summarize(found, NO_PROBLEMS)

    assert (len(shown.offline), len(shown.cordoned)) == (MAX_SHOWN, MAX_SHOWN)
    assert read_log_dirs(shown.to_json()) == shown
    assert NO_PROBLEMS.to_json() is None
    assert read_log_dirs(None) == NO_PROBLEMS


def shown(known: Cluster, found: BrokerLogDirs) -> tuple[Cluster, ResourceEvent | None]:
    """The Cluster after a read of its log directories, and the event."""
    step = decide_cluster(known, ClusterSnapshot(ObservedCluster("abc", 1, (1, 2)), log_dirs=found), NOW, 0.0)
    assert isinstance(step, WriteStatus)
    return replace(known, status=step.status), step.event


def condition(known: Cluster) -> tuple[str, str]:
    """Status and reason of LogDirsOnline."""
    found = condition_of(known.status.conditions, "LogDirsOnline")
    return ("", "") if found is None else (found.status, found.reason)


@pytest.mark.shows("F44")
def test_a_failed_directory_is_a_condition_and_an_event() -> None:
    """With the directory and what to do; its end is an event, too."""
    known, event = shown(cluster(), {1: (LogDir("/a"),), 2: (LogDir("/a"), LogDir("/b"))})
    assert (condition(known), event) == (("True", "AllOnline"), None)

    known, event = shown(known, {1: (LogDir("/a"),), 2: (LogDir("/a"), LogDir("/b", online=False))})
    assert condition(known) == ("False", "LogDirOffline")
    assert known.status.log_dirs.offline == (Directory(2, "/b"),)
    assert event is not None
    assert (event.warning, event.reason) == (True, "LogDirOffline")
    assert "Log directories that are offline: /b of broker 2. Replace the disk" in event.message

    known, event = shown(known, {1: (LogDir("/a"),), 2: (LogDir("/a"), LogDir("/b"))})
    assert event is not None
    assert (condition(known), event.warning) == (("True", "AllOnline"), False)


def test_a_missing_right_is_reported_and_a_restart_is_not() -> None:
    """DescribeLogDirs needs Describe on the cluster."""
    known, event = shown(cluster(), {1: NOT_ALLOWED, 2: NOT_ALLOWED})
    assert condition(known) == ("Unknown", "NotAuthorized")
    assert event is not None

    known, event = shown(cluster(), {1: (LogDir("/a"),), 2: RESTARTING})
    assert (condition(known), event) == (("True", "AllOnline"), None)
