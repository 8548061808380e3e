"""Resources read from the API's JSON, and written back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka_operator import kinds
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.reassignment import ReassignmentStatus, State, read_reassignment
from kafka_operator.resources.reassignment_records import Progress
from kafka_operator.resources.topic import read_topic
from reconciler.names import FINALIZER, Key
from reconciler.resources.metadata import newer, read_time, write_time
from tests.kafka_operator.makers import assignments, raw_reassignment, raw_topic


def test_a_topic_is_read_with_defaults_for_what_is_optional() -> None:
    """The name in Kafka is metadata.name; the topic goes with its resource; no settings."""
    raw = raw_topic()
    raw["metadata"] |= {"uid": "u", "resourceVersion": "12", "creationTimestamp": "2026-01-01T00:00:00Z"}

    found = read_topic(raw)

    assert found.key == Key(kinds.TOPIC, "shop", "orders")
    assert found.cluster == ClusterRef("shop", "main")
    assert (
        found.name,
        found.partitions,
        found.replication_factor,
        found.config,
        found.retain,
    ) == ("orders", 6, 3, (), False)
    assert not found.metadata.has_finalizer


def test_foreign_annotations_are_not_kept() -> None:
    """Kubectl's last-applied copy doubles an object; ten thousand of them stay resident."""
    raw = raw_topic()
    raw["metadata"] |= {
        "uid": "u",
        "resourceVersion": "12",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "steward.dev/managed-config": "a,b"},
        "finalizers": ["foreign/one", FINALIZER],
    }

    found = read_topic(raw)

    assert found.metadata.annotations == (("steward.dev/managed-config", "a,b"),)
    assert found.managed_config == frozenset({"a", "b"})
    assert found.metadata.finalizers == ("foreign/one", FINALIZER)


def test_a_reassignment_status_reads_back_as_it_was_written() -> None:
    """Base, plan and progress survive a restart."""
    status = ReassignmentStatus(
        observed_generation=2,
        state=State.RUNNING,
        plan=assignments(p0=(2, 3)),
        base=assignments(p0=(1, 2)),
        progress=Progress(1, 3),
        start_time="2026-01-01T00:00:00Z",
    )
    raw = raw_reassignment(plan=[])
    raw["metadata"] |= {"uid": "u", "resourceVersion": "12", "creationTimestamp": "2026-01-01T00:00:00Z"}
    raw["status"] = {name: value for name, value in status.to_patch().items() if value is not None}

    assert status == read_reassignment(raw).status


def test_a_status_patch_takes_away_what_is_not_known() -> None:
    """RFC 7386: null removes."""
    patch = replace(ReassignmentStatus(state=State.FAILED)).to_patch()

    assert patch["progress"] is None
    assert patch["state"] == "Failed"


@pytest.mark.parametrize(("done", "total", "percent"), [(0, 6, 0), (5, 6, 83), (6, 6, 100), (0, 0, 100)])
def test_percent_is_rounded_down(done: int, total: int, percent: int) -> None:
    """100 % is reported when all have arrived, not before."""
    assert percent == Progress(done, total).percent


def test_versions_are_compared_as_numbers() -> None:
    """KEP-5504; anything else counts as newer when it differs."""
    assert newer("10", "9")
    assert not newer("9", "10")
    assert not newer("9", "9")
    assert newer("b", "a")
    assert not newer("a", "a")


def test_times_are_written_in_whole_seconds() -> None:
    """metav1.Time."""
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)

    assert write_time(moment) == "2026-01-02T03:04:05Z"
    assert datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) == read_time("2026-01-02T03:04:05Z")
