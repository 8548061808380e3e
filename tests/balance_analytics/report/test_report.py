"""The report: one self-contained HTML file with escaped texts and text alternatives of pictures, a summary, and metrics."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from prometheus_client.parser import text_string_to_metric_families

from balance_analytics.model.report_input import ProposedMoves, ReportInput, ResourceMove
from balance_analytics.model.results import (
    Broker,
    Forecast,
    HeatMap,
    HotPartition,
    LeaderImbalance,
    LeftOut,
    Result,
    Skew,
    SkewAt,
    Window,
)
from balance_analytics.report.page import page_of, pictures_of
from balance_analytics.report.report_files import METRICS, PAGE, SUMMARY, report_files
from balance_analytics.report.summary import metrics_of, summary_of
from tests.balance_analytics.generated import SMALL
from tests.balance_analytics.report_of_generated_load import generated_report

HOSTILE = '<script src="http://evil">$x$ & "'
HOURS = tuple(f"2026-01-01T{hour:02}:00:00Z" for hour in range(24))

RESULT = Result(
    schema=1,
    cluster_id=HOSTILE,
    window=Window(HOURS[0], "2026-01-02T00:00:00Z", 24, 23),
    partitions=2,
    topics=1,
    skew=(Skew("bytes_in", 0.25, 2.0, 0.5, "offsets"), Skew("disk", 0.1, 1.2, 0.1, "log size")),
    skew_over_time=tuple(SkewAt(hour, name, 1.5, 0.2) for hour in HOURS for name in ("bytes_in", "leaders")),
    brokers=(Broker(1, HOSTILE, 1, 1, 2, 5.0, 6.0, None, 1.0, 10_000, HOURS[3], 0.1, 24, counted=True),),
    leader_imbalance=LeaderImbalance(2, 1, 0.5, 3, 1.0, 0),
    hot_partitions_found=1,
    hot_partitions=(HotPartition(HOSTILE, 3, 1, 5.0, 9.0, 4.5, 0.3, "uneven keys"),),
    hot_rule="a rule",
    forecasts=(
        Forecast(1, 5, 10, 1.5, 4.0, 3.0, None, 90.0, "a method"),
        Forecast(2, 5, None, 1.5, None, None, None, 90.0, "a method"),
    ),
    topic_skew=(),
    key_skew=(),
    heat_map=HeatMap(1, HOURS, (1, 2), (tuple(range(24)), (None,) * 24)),
    left_out=(LeftOut(HOSTILE, 1, "write it again"),),
)
MOVES = ProposedMoves(
    name=HOSTILE,
    partitions=3,
    leaders_only=1,
    copied_bytes=2048,
    lower_bound_bytes=1024,
    resources=(ResourceMove("disk", "bytes", "log sizes", (1, 2), (30.0, 10.0), (21.0, 19.0), 20.0, 0.05),),
    unreached=(HOSTILE,),
)
REPORT = ReportInput(HOSTILE, "2026-01-02T00:10:00Z", RESULT, MOVES)


class Tags(HTMLParser):
    """Tags and attributes of a page; `open` has the tags that are not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()


@pytest.fixture(scope="module")
def page() -> str:
    """The page of a report in which every text is hostile."""
    return page_of(REPORT, pictures_of(REPORT))


@pytest.mark.slow
def test_every_text_is_escaped(page: str) -> None:
    """Names of topics, racks and clusters are never markup."""
    tags = Tags(page)

    assert tags.open == []
    assert not {"script", "link", "iframe", "object", "form"} & {name for name, _ in tags.found}
    assert "<script" not in page
    assert "&lt;script" in page


def test_the_page_has_no_external_resources(page: str) -> None:
    """The Content-Security-Policy also forbids them."""
    tags = Tags(page)
    sources = [
        value or "" for _, attributes in tags.found for name, value in attributes.items() if name in {"src", "href"}
    ]

    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert not re.search(r"url\(|@import", page)


@pytest.mark.slow
def test_every_picture_has_a_text_alternative_and_a_source(page: str) -> None:
    """The page also has the source of each resource."""
    pictures = pictures_of(REPORT)

    assert {picture.name for picture in pictures} == {
        "heat-map",
        "before-after",
        "skew",
        "hot-partitions",
        "disk-forecast",
    }
    for one in pictures:
        assert one.png.startswith(b"\x89PNG")
        assert len(one.alt) > 40
        assert one.source
    images = [attributes for name, attributes in Tags(page).found if name == "img"]
    assert [attributes["alt"] for attributes in images] == [picture.alt for picture in pictures]
    assert "log size" in page
    assert "offsets" in page


def test_the_same_report_gives_the_same_bytes() -> None:
    """For speed with only one picture."""
    few = replace(REPORT, result=replace(RESULT, skew_over_time=(), hot_partitions=(), heat_map=HeatMap(1, (), (), ())))

    assert report_files(few) == report_files(few)


def test_an_empty_study_has_a_page_without_pictures() -> None:
    """Missing data of any kind is not an error."""
    empty = replace(
        RESULT,
        skew=(),
        skew_over_time=(),
        brokers=(),
        hot_partitions=(),
        forecasts=(),
        heat_map=HeatMap(1, (), (), ()),
        left_out=(),
    )
    report = ReportInput("c", "2026-01-02T00:10:00Z", empty)

    assert pictures_of(report) == ()
    assert "No proposal was requested" in page_of(report, ())


def test_the_summary_has_skew_moves_and_the_disk_that_is_full_first() -> None:
    """For the status of the SparkApplication: skew before and after the moves."""
    summary = summary_of(REPORT).to_json()

    assert summary["skew"] == {"bytes_in": 2.0, "disk": 1.2}
    assert summary["skewAfter"] == {"disk": 1.05}
    assert {name: summary["soonestFull"][name] for name in ("broker", "days")} == {"broker": 1, "days": 4.0}
    assert summary["soonestFull"]["daysLow"] <= 4.0
    assert summary["soonestFull"]["daysHigh"] is None  # beyond the forecast
    assert summary["skewBefore"].keys() == summary["skewAfter"].keys()
    assert summary["bytesToMove"] == 2048


def test_metrics_are_valid_for_the_parser_of_prometheus() -> None:
    """Hostile names are escaped in label values."""
    families = {
        family.name: family
        for family in text_string_to_metric_families(metrics_of(summary_of(REPORT), HOSTILE + "\n\\"))
    }

    skew = {sample.labels["resource"]: sample.value for sample in families["steward_balance_skew"].samples}
    assert skew == {"bytes_in": 2.0, "disk": 1.2}
    assert families["steward_balance_partitions"].samples[0].labels["cluster_id"] == HOSTILE + "\n\\"
    assert families["steward_balance_disk_full_days"].samples[0].value == 4.0


@pytest.mark.slow
def test_the_report_of_generated_load_has_moves_that_reduce_skew() -> None:
    """From load to files: the skew that the study measures decreases."""
    report, proposal = generated_report(SMALL)
    files = report_files(report)

    assert {PAGE, SUMMARY, METRICS} <= files.keys()
    assert proposal.moves
    summary = json.loads(files[SUMMARY])
    assert summary["skewAfter"]["client_bytes_in"] < summary["skew"]["bytes_in"]
