"""Metrics: what is documented is there, and what is there is documented; what gauges show of resources."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.metrics import MetricWrapperBase

from controller_core.shell.metrics import Metrics as ControllerMetrics
from kafka_operator import kinds
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.reassignment import ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from kafka_operator.resources.throttle import ThrottleRecord
from reconciler.metrics import Metrics
from reconciler.names import Key
from spark_operator.metrics import SparkMetrics
from tests.kafka_operator.idle_core import idle_core
from tests.kafka_operator.makers import cluster, reassignment, topic

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


def documented() -> dict[str, set[str]]:
    """Names and labels as the page has them."""
    rows = re.findall(r"^\| `(steward_\w+)` \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def existing() -> dict[str, set[str]]:
    """Names, as Prometheus shows them, and labels of the operator's metrics, and of the controller's that are not Kafka's."""
    found = {}
    operator = KafkaMetrics()
    SparkMetrics(operator.registry)
    for collector in (*operator.registry._collector_to_names, *ControllerMetrics().registry._collector_to_names):
        assert isinstance(collector, MetricWrapperBase), collector
        suffix = "_total" if collector._type == "counter" else ""
        if collector._name.startswith("steward_"):
            found[collector._name + suffix] = set(collector._labelnames)
    return found


@pytest.mark.shows("F37")
def test_documented_metrics_exist_and_existing_ones_are_documented() -> None:
    """Names and labels alike: alerts are written by the page."""
    assert existing() == documented()


def test_expressions_of_alerts_name_metrics_that_there_are() -> None:
    """Those of the page."""
    named = set(re.findall(r"\bsteward_\w+", PAGE.read_text(encoding="utf-8")))

    assert named - existing().keys() == set()


@pytest.mark.shows("F37")
def test_gauges_show_known_resources_and_forget_deleted_ones() -> None:
    """Ready by kind; the throttle that is in force; how far a move is."""
    metrics = KafkaMetrics()
    core = idle_core(metrics=metrics, serves=lambda ref: ref.name == "main")
    cache, gauges = core.cache, core.gauges
    moving = reassignment()
    status = ReassignmentStatus(
        state=State.RUNNING, progress=Progress(done=1, total=4), throttle=ThrottleRecord(rates=(5, 7))
    )
    cache.store(cluster())
    cache.store(topic())
    cache.store(topic("far", cluster="other", uid="far"))
    cache.store(replace(moving, status=status))
    gauges.refresh()

    def shown(metric: str, /, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"steward_{metric}", labels)

    place = {"namespace": "shop", "name": "move"}
    assert shown("resources_ready", kind="Topic", ready="Unknown") == 1
    assert (
        shown("reassignment_throttle_bytes_per_second", **place),
        shown("reassignment_progress_ratio", **place),
    ) == (7, 0.25)
    cache.delete(moving.key)
    gauges.refresh()
    assert shown("reassignment_throttle_bytes_per_second", **place) is None
    assert shown("reassignment_progress_ratio", **place) is None


@pytest.mark.shows("F37")
def test_a_batch_is_shown_in_progress_by_kind_and_name() -> None:
    """Since when, so that an alert finds what is stuck; and no longer than it goes on."""
    metrics = Metrics()
    labels = {"kind": "Topic", "namespace": "shop", "name": "orders"}
    name = "steward_reconciliations_in_progress_start_time_seconds"
    with metrics.batch(kinds.TOPIC, [Key(kinds.TOPIC, "shop", "orders")], clock=lambda: 1234.5):
        assert pytest.approx(metrics.registry.get_sample_value(name, labels)) == 1234.5
    assert metrics.registry.get_sample_value(name, labels) is None
