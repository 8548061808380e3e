"""Prometheus' rates take the place of the estimate where they are given, with their source.

Source: docs/analytics.md (where each figure comes from).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs.facts import merged
from balance_analytics.jobs.main import parser, run
from balance_analytics.jobs.problems import LeftOuts
from balance_analytics.jobs.rates import stage, with_rates
from balance_analytics.model.column import ddl
from balance_analytics.model.facts import FACTS
from balance_analytics.model.rate_rows import TOPIC_HOURS
from balance_analytics.model.results import Result
from balance_analytics.sampling.prometheus import Rate, write_rates
from lab.generated_load import LoadSpec, lay_out
from lab.generated_load.minute_samples import write_samples
from tests.balance_analytics import published

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

LOAD = LoadSpec(seed=3, partitions=8, topics=2, brokers=3, days=1, hot=0, outages=0, gaps=0, resets=0)
HOUR_MS = 3_600_000
START_MS = LOAD.start_s * 1000
NOW_MS = START_MS + LOAD.hours * HOUR_MS
RATED = range(2, 20)
"""Hours of which Prometheus knows."""


def planted(topic: str, resource: str, hour: int) -> float:
    """A topic's rate, which offsets do not contain."""
    return 1000.0 * (hour + 1) + (500.0 if resource == "bytes_out" else 0.0) + len(topic)


def fact(partition: int, topic: str = "t", minutes: int = 60, **changes: Any) -> tuple[Any, ...]:
    """The fact of a partition in the first hour."""
    row: dict[str, Any] = dict.fromkeys(column.name for column in FACTS)
    row |= {"cluster_id": "c", "topic": topic, "partition": partition, "minutes": minutes, "messages_in": 60.0}
    row |= {"bytes_in": 60.0, "bytes_out": 60.0, "bytes_out_source": "estimate", "source_in": "offsets"}
    return tuple({**row, **changes}.values())


def test_a_topics_rate_is_spread_by_the_first_rule_that_knows(spark: SparkSession) -> None:
    """By the estimate, else by messages, else evenly. What was not sampled has its share and no number."""
    unknown: dict[str, Any] = {"bytes_out": None, "bytes_out_source": "none"}
    rows = [
        fact(0, "estimate", bytes_out=30.0),
        fact(1, "estimate", bytes_out=90.0, messages_in=7.0),
        fact(2, "estimate", minutes=30, bytes_out=60.0),  # as fast as 120 an hour
        fact(0, "unseen", bytes_out=30.0),
        fact(1, "unseen", bytes_out=90.0),
        fact(2, "unseen", minutes=0, **unknown),
        fact(0, "messages", messages_in=20.0, **unknown),
        fact(1, "messages", messages_in=60.0, **unknown),
        fact(0, "even", messages_in=0.0, **unknown),
        fact(1, "even", messages_in=0.0, **unknown),
        fact(0, "no rate", bytes_out=30.0),
    ]
    hours = [(topic, None, None, 240.0) for topic in ("estimate", "unseen", "messages", "even")]
    rates = spark.createDataFrame(hours, ddl(TOPIC_HOURS))
    facts = spark.createDataFrame(rows, ddl(FACTS))
    # Times of facts and rates are null here; null joins nothing.
    at = "TIMESTAMP'2026-03-02 10:00:00' AS hour"
    plain = facts.selectExpr(*(at if column.name == "hour" else column.name for column in FACTS))
    rated = with_rates(plain, rates.selectExpr("topic", at, "rate_bytes_in", "rate_bytes_out"))
    found = rated.collect()

    paces = {
        (row.topic, row.partition): row.bytes_out and round(row.bytes_out / row.minutes / 60, 9)
        for row in sorted(found)
    }
    expected = {
        ("estimate", 0): 30.0,
        ("estimate", 1): 90.0,
        ("estimate", 2): 120.0,
        ("unseen", 0): 40.0,
        ("unseen", 1): 120.0,
        ("unseen", 2): None,
        ("messages", 0): 60.0,
        ("messages", 1): 180.0,
        ("even", 0): 120.0,
        ("even", 1): 120.0,
        ("no rate", 0): round(30 / 3600, 9),
    }
    assert paces == expected
    assert {(row.topic, row.bytes_out_source) for row in found if row.bytes_out_source != "prometheus"} == {
        ("no rate", "estimate"),
        ("unseen", "none"),
    }
    assert {(row.bytes_in, row.source_in) for row in found} == {(60.0, "offsets")}
    # They stay once Prometheus no longer has them.
    assert sorted(found) == sorted(merged(plain, rated).collect())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of samples, and rates of two overlapping runs of the sampler; other files are ignored."""
    made = tmp_path_factory.mktemp("rated")
    layout = lay_out(LOAD)
    write_samples(layout, made / "samples")
    (made / "rates").mkdir()
    rates = [
        Rate(resource, topic, START_MS + hour * HOUR_MS + minute * 60_000 + 150_000, planted(topic, resource, hour))
        for resource in ("bytes_in", "bytes_out")
        for topic in [*layout.names, "elsewhere"]
        for hour in RATED
        for minute in range(0, 60, 5)
        if resource == "bytes_out" or topic == layout.names[0]
    ]
    rates.append(Rate("bytes_out", layout.names[0], START_MS + 150_000, 7.0))  # of a moment: too few for an hour
    rates.append(Rate("cpu", "broker-1:7071", START_MS + 150_000, 0.5))
    write_rates(made / "rates" / "a.json", rates[: len(rates) * 2 // 3])
    write_rates(made / "rates" / "b.json", rates[len(rates) // 3 :])
    good = rates[0]._asdict()
    bad: list[dict[str, Any]] = [
        {"value": -1.0},
        {"value": float("nan")},
        {"value": "much"},
        {"of": None},
        {"of": "x" * 2000},
        {"at_ms": 2 * NOW_MS},
        {"resource": "hope"},
        {"source": "guess"},
    ]
    lines = ["no rate", "[", *(json.dumps({**good, **field}) for field in bad)]
    (made / "rates" / "c.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


def studied(folder: Path, stages: str, *more: str) -> tuple[Result | None, dict[tuple[Any, ...], dict[str, Any]]]:
    """Run stages; the result, if there is one, and facts by topic, partition and hour."""
    places = ["--samples", f"{folder}/samples", "--facts", f"{folder}/facts", "--out", f"{folder}/out"]
    options = parser().parse_args([*places, "--stage", stages, *more])
    result = run(options, NOW_MS).result
    rows = published.rows(folder / "facts")
    hours = [(int(row["hour"].timestamp()) - LOAD.start_s) // 3600 for row in rows]
    return result, {(row["topic"], row["partition"], hour): row for row, hour in zip(rows, hours, strict=True)}


def test_planted_rates_and_their_source_are_found(spark: SparkSession, folder: Path) -> None:
    """To the byte in every hour that has them; other hours keep the estimate; twice the same."""
    assert spark is not None
    names = lay_out(LOAD).names
    _, before = studied(folder, "facts")
    result, facts = studied(folder, "facts,loads,study", "--rates", f"{folder}/rates")

    for name in names:
        for resource, source in (("bytes_in", "source_in"), ("bytes_out", "bytes_out_source")):
            for hour in range(LOAD.hours):
                of_topic = {at: fact for at, fact in facts.items() if (at[0], at[2]) == (name, hour)}
                if hour in RATED and (resource == "bytes_out" or name == names[0]):
                    assert {fact[source] for fact in of_topic.values()} == {"prometheus"}
                    pace = sum(fact[resource] / fact["minutes"] / 60 for fact in of_topic.values())
                    assert pytest.approx(planted(name, resource, hour)) == pace
                    shares = [fact[resource] * before[at]["minutes"] / fact["minutes"] for at, fact in of_topic.items()]
                    former = [before[at][resource] for at in of_topic]
                    assert pytest.approx([bytes_out / sum(former) for bytes_out in former]) == [
                        share / sum(shares) for share in shares
                    ]
                else:
                    assert all(fact[resource] == before[at][resource] for at, fact in of_topic.items())
                    assert not {"prometheus"} & {fact[source] for fact in of_topic.values()}

    assert result is not None
    sources = {skew.resource: skew.source for skew in result.skew}
    assert sources["bytes_in"].startswith("prometheus in ")
    assert sources["bytes_in"].endswith(" % of hours, else offsets")
    assert sources["bytes_out"] == "prometheus in 75.0 % of hours, else estimate"
    noted = {note.what: note.count for note in result.left_out if "rates" in note.what}
    assert noted == {"lines that are not rates of Prometheus": 10, "topics of rates without samples": 1}
    assert studied(folder, "facts", "--rates", f"{folder}/rates") == (None, facts)


@pytest.mark.parametrize("empty", [False, True])
def test_rates_that_are_not_there_are_named_or_none(spark: SparkSession, tmp_path: Path, empty: bool) -> None:
    """The study goes on with the estimate."""
    left_out = LeftOuts()
    if empty:
        (tmp_path / "rates").mkdir()

    assert stage(spark, f"{tmp_path}/rates", f"{tmp_path}/staged", NOW_MS, left_out) is None
    assert ([] if empty else [f"rates: there are none at {tmp_path}/rates"]) == [note.what for note in left_out.all()]
