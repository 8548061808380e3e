"""Summaries of the balance analytics: from a driver's termination message into the status and the metrics. Nothing of them is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from reconciler.names import Key
from spark_operator import kinds
from spark_operator.engine.balance_gauges import set_balance_gauges
from spark_operator.metrics import BalanceMetrics
from spark_operator.resources.status import SparkStatus, read_spark_status
from spark_operator.resources.summary import (
    MAX_MESSAGE_BYTES,
    START,
    SummaryError,
    message_of,
    read_summary,
    summary_in,
)
from tests.reconciler.virtual_time import in_virtual_time
from tests.spark_operator.fake_spark import FAILS, SUCCEEDS
from tests.spark_operator.makers import raw_spark, spark, spark_running

SUMMARY: dict[str, Any] = {
    "windowEnd": "2026-03-02T10:00:00Z",
    "partitions": 12,
    "hotPartitions": 1,
    "notPreferredRatio": 0.25,
    "soonestFull": {"broker": 3, "days": 4.5, "daysLow": 4, "daysHigh": None},
    "skew": {"bytes_in": 2.75, "disk": 1},
    "skewBefore": {"leaders": 2.75},
    "skewAfter": {"leaders": 1.0},
    "movedPartitions": 8,
    "bytesToMove": 1200,
    "leftOuts": 0,
    "reassignment": "main-balance-0123456789",
    "report": "file:///data/out/report.html",
}


def message(**changes: Any) -> str:
    """A driver's termination message."""
    return json.dumps({"kind": "BalanceSummary", **SUMMARY, **changes}, separators=(",", ":"))


@pytest.mark.shows("F24")
@in_virtual_time
async def test_the_summary_of_a_driver_that_completed_is_in_the_status() -> None:
    """With its end, in one write; a failed driver's words are in the condition instead."""
    async with spark_running() as world:
        text = "there are no samples yet at kafka://b:9092: start `steward sampler`"
        world.fake.scripts = [replace(FAILS, message=text), replace(SUCCEEDS, message=message())]
        world.kube.apply(raw_spark(restartPolicy={"type": "OnFailure", "onFailureRetryInterval": 1}))
        await world.until(lambda: world.status().get("state") == "PendingRerun")
        assert "start `steward sampler`" in world.status()["conditions"][0]["message"]
        assert "summary" not in world.status()

        await world.until(lambda: world.status()["state"] == "Completed")

        found = world.status()["summary"]
        assert found["skewBefore"] == {"leaders": 2.75}
        assert found["soonestFull"] == {"broker": 3, "days": 4.5, "daysLow": 4.0}
        assert (found["reassignment"], found["bytesToMove"]) == ("main-balance-0123456789", 1200)


@in_virtual_time
async def test_an_unreadable_summary_is_reported_once_and_fails_nothing() -> None:
    """It was cut off; the application has completed all the same."""
    async with spark_running() as world:
        world.fake.scripts = [replace(SUCCEEDS, message=message()[:-9])]
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Completed")

        messages = [event.message for event in world.kube.events if "summary" in event.message]
        assert len(messages) == 1
        assert "is invalid and ignored: it is not JSON" in messages[0]
        assert "summary" not in world.status()


def test_another_programs_message_is_no_summary() -> None:
    """A program may write anything."""
    assert summary_in("") is None
    assert summary_in("killed by the moon") is None
    assert summary_in('{"kind": "Other"}') is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"partitions": None}, "partitions lacks"),
        ({"partitions": -1}, "partitions is not a number from 0"),
        ({"partitions": 1.5}, "partitions is not a whole number"),
        ({"partitions": True}, "partitions is not a number"),
        ({"bytesToMove": 2**80}, "bytesToMove is not a number from 0"),
        ({"windowEnd": "yesterday"}, "windowEnd does not have the required form"),
        ({"skew": {"x" * 99: 1}}, "skew has names"),
        ({"skew": {f"r{'x' * number}": 1 for number in range(17)}}, "skew is not an object of at most 16"),
        ({"skew": [1]}, "skew is not an object"),
        ({"soonestFull": 3}, "soonestFull is not an object"),
        ({"soonestFull": {"broker": 1}}, "days lacks"),
        ({"reassignment": "../x"}, "reassignment does not have the required form"),
        ({"reassignment": "x" * 254}, "reassignment does not have the required form"),
        ({"report": "a\nb"}, "report is not text"),
        ({"report": "x" * 1025}, "report is not text"),
        ({"report": "x" * 5000}, "more than 4096 bytes"),
        ({"notPreferredRatio": float("nan")}, "notPreferredRatio is not a number from 0"),
    ],
)
def test_an_invalid_summary_is_refused_by_name(changes: dict[str, Any], text: str) -> None:
    """Any image may be a driver."""
    with pytest.raises(SummaryError, match=text):
        summary_in(message(**changes))


@given(
    st.text(max_size=80) | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=9).map(json.dumps)
)
def test_whatever_follows_is_a_summary_or_an_error(rest: str) -> None:
    """Never another exception."""
    with pytest.raises(SummaryError):
        summary_in(START + rest)


def test_a_summary_is_read_back_from_a_status_as_it_was_written() -> None:
    """The merge leaves out what is not known."""
    found = read_summary(SUMMARY)
    patch = SparkStatus(summary=found).to_patch()["summary"]
    kept = {name: value for name, value in patch.items() if value is not None}

    assert found == read_spark_status({"summary": kept}).summary
    assert len(message().encode()) < MAX_MESSAGE_BYTES


def test_a_message_is_read_as_it_was_written() -> None:
    """Ratios with four digits, as people read them; days as they are."""
    found = replace(read_summary(SUMMARY), not_preferred_ratio=1 / 3, skew={"disk": 7 / 3})

    message = message_of(found)

    assert message.startswith(START)
    assert replace(found, not_preferred_ratio=0.3333, skew={"disk": 2.3333}) == summary_in(message)


def test_a_schedule_shows_its_last_study_and_what_is_gone_is_shown_no_more() -> None:
    """One series a schedule, whatever its runs are named."""
    registry = CollectorRegistry()
    metrics = BalanceMetrics(registry)
    owner = Key(kinds.SCHEDULED_SPARK_APPLICATION, "shop", "balance")

    def run(name: str, end: str, skew: float) -> Any:
        made = spark(name, status={"summary": {**SUMMARY, "windowEnd": end, "skew": {"disk": skew}}})
        return replace(made, metadata=replace(made.metadata, owner=owner))

    def shown(metric: str, /, **labels: str) -> float | None:
        return registry.get_sample_value(f"steward_balance_{metric}", {"namespace": "shop", **labels})

    set_balance_gauges(
        [run("b-2", "2026-03-03T10:00:00Z", 1.5), run("b-1", "2026-03-02T10:00:00Z", 2.5), spark("by-hand")],
        metrics,
    )
    assert shown("skew", name="balance", resource="disk") == 1.5
    assert shown("disk_full_days", name="balance", broker="3") == 4.5
    assert shown("window_end_seconds", name="balance") == 1772532000
    set_balance_gauges([], metrics)
    assert shown("skew", name="balance", resource="disk") is None
