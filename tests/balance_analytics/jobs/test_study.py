"""From hourly facts to the result: the planted truth is found, by Spark as by the plain twins, and twice the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from balance_analytics.jobs.main import parser, run
from balance_analytics.model.loads import PARTITIONS_PART
from balance_analytics.model.results import Result
from balance_analytics.study import series
from lab.generated_load import Truth, lay_out, truth_of
from lab.generated_load.hourly_facts import write_facts
from tests.balance_analytics.generated import SMALL
from tests.balance_analytics.published import rows
from tests.balance_analytics.shared_spark import SharedSpark

pytestmark = [pytest.mark.java, pytest.mark.timeout(600), pytest.mark.usefixtures("spark")]

END_MS = (SMALL.start_s + SMALL.hours * 3600) * 1000


def asked(folder: Path, *more: str) -> Any:
    """The command line of a run over the facts in a folder."""
    return parser().parse_args(["--facts", str(folder / "facts"), "--out", str(folder / "out"), *more])


@pytest.fixture(scope="module")
def studied(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result, Truth]:
    """The stages `loads` and `study` over two weeks, once for this module."""
    spark = shared_spark.get()
    folder = tmp_path_factory.mktemp("studied")
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    layout = lay_out(SMALL)
    truth = truth_of(layout)
    write_facts(layout, folder / "facts")
    brokers = {
        str(broker): {"rack": f"rack-{broker % 2}", "disk_bytes": int(held + 20 * truth.disk_growth[broker])}
        for broker, held in truth.disk_bytes.items()
    }
    (folder / "brokers.json").write_text(str(brokers).replace("'", '"'))
    run(asked(folder, "--stage", "loads", "--brokers", str(folder / "brokers.json")), END_MS)
    result = run(asked(folder, "--stage", "study", "--brokers", str(folder / "brokers.json")), END_MS).result
    assert result is not None
    return folder, result, truth


@pytest.mark.shows("F24", "E11")
def test_the_planted_truth_is_found(studied: tuple[Path, Result, Truth]) -> None:
    """Hot partitions all and none else; skew and loads within two percent; every broker has a forecast."""
    _, result, truth = studied

    assert truth.hot == {(hot_partition.topic, hot_partition.partition) for hot_partition in result.hot_partitions}
    found = next(skew for skew in result.skew if skew.resource == "bytes_in")
    expected = (truth.gini, truth.max_over_mean, truth.coefficient_of_variation)
    assert pytest.approx(expected, rel=0.02) == (found.gini, found.max_over_mean, found.coefficient_of_variation)
    assert pytest.approx(truth.broker_bytes_in, rel=0.02) == {
        broker.broker: broker.bytes_in_mean for broker in result.brokers
    }
    assert pytest.approx(truth.disk_bytes, rel=1e-6) == {broker.broker: broker.disk_bytes for broker in result.brokers}
    assert truth.not_preferred == result.leader_imbalance.not_preferred
    assert {forecast.broker for forecast in result.forecasts if forecast.days is not None} == {1, 2, 3, 4, 5}
    assert [broker.rack for broker in result.brokers[:2]] == ["rack-1", "rack-0"]
    assert (result.window.hours, result.window.hours_seen) == (336, 336)


def test_loads_are_what_the_plain_twins_say(studied: tuple[Path, Result, Truth]) -> None:
    """Mean, percentile, busiest hour and trend of each partition, from the same facts."""
    folder, _, _ = studied
    hours = pq.read_table(
        folder / "facts", columns=["topic", "partition", "hour", "bytes_in", "size_bytes"]
    ).to_pylist()
    loads = rows(folder / "out" / "loads", PARTITIONS_PART)
    rates: dict[tuple[str, int], Any] = {}
    for hour in hours:
        line = rates.setdefault((hour["topic"], hour["partition"]), np.full(SMALL.hours, np.nan))
        line[(int(hour["hour"].timestamp()) - SMALL.start_s) // 3600] = hour["bytes_in"] / 3600

    assert SMALL.partitions - 1 >= len(loads)
    for load in loads:
        twin = series.summary(rates[load["topic"], load["partition"]])
        assert twin is not None
        peak_at = (int(load["bytes_in_peak_hour"].timestamp()) - SMALL.start_s) // 3600
        found = (
            load["hours"],
            load["bytes_in_mean"],
            load["bytes_in_p95"],
            load["bytes_in_peak"],
            load["bytes_in_trend"],
        )
        assert pytest.approx((twin.hours, twin.mean, twin.p95, twin.peak, twin.trend), rel=1e-5, abs=2e-3) == found
        assert pytest.approx(twin.peak, abs=1) == rates[load["topic"], load["partition"]][peak_at]


def test_a_topic_that_was_deleted_is_named_and_in_no_load(studied: tuple[Path, Result, Truth]) -> None:
    """Nothing can move it any more."""
    folder, result, _ = studied
    layout = lay_out(SMALL)
    (gone,) = (layout.names[topic] for topic in layout.deleted)

    loads = [row["topic"] for row in rows(folder / "out" / "loads", PARTITIONS_PART)]

    assert gone not in loads
    assert [note.count for note in result.left_out if gone in note.what] == [1]
    assert SMALL.partitions - list(layout.topic).count(SMALL.topics - 1) == result.partitions == len(loads)
