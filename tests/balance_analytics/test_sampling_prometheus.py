"""Rates from a Prometheus: what is asked, what is believed of the answer, and what is refused before it is parsed.

Sources: docs/analytics.md (optional inputs; the source stated), Prometheus' HTTP API (query_range).
"""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.sampling import prometheus
from balance_analytics.sampling.prometheus import (
    PrometheusError,
    PrometheusSettings,
    Query,
    Rate,
    parse,
    query_rates,
    write_rates,
)
from lab.ports import free_port, release_port

QUERY = {"bytes_in": Query("sum by (topic) (rate(in[5m]))", "topic")}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def matrix(*series: dict[str, Any]) -> dict[str, Any]:
    """A good answer."""
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def of_topic(name: str, *values: tuple[float, str]) -> dict[str, Any]:
    """One series."""
    return {"metric": {"topic": name}, "values": [list(one) for one in values]}


@contextlib.asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[PrometheusSettings]:
    """A server that answers so, and how it is reached."""
    application = web.Application()
    application.add_routes([web.post("/prefix/api/v1/query_range", handler)])
    runner, port = web.AppRunner(application), free_port()
    try:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield PrometheusSettings(url=f"http://127.0.0.1:{port}/prefix/", queries=QUERY)
    finally:
        await runner.cleanup()
        release_port(port)


async def test_rates_are_asked_for_by_resource_and_say_their_source() -> None:
    """One query each, over the whole range."""
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(dict(await request.post()))
        return web.json_response(matrix(of_topic("orders", (60, "1.5"), (120, "2"))))

    async with answering(answer) as settings:
        found = await query_rates(settings, 60_000, 120_000, 60)

    assert asked == [{"query": QUERY["bytes_in"].expression, "start": "60.000", "end": "120.000", "step": "60s"}]
    assert found == [
        Rate("bytes_in", "orders", 60_000, 1.5, "prometheus"),
        Rate("bytes_in", "orders", 120_000, 2.0, "prometheus"),
    ]


async def test_an_answer_over_the_limit_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is parsed, and before all of it has come."""
    monkeypatch.setattr(prometheus, "MAX_ANSWER_BYTES", 1_000)

    async def flood(_: web.Request) -> web.Response:
        return web.Response(body=b" " * 200_000)

    async with answering(flood) as settings:
        with pytest.raises(PrometheusError, match="more than 1000 bytes"):
            await query_rates(settings, 0, 60_000, 60)


@pytest.mark.parametrize(("status", "words"), [(503, "answers 503: busy"), (302, "answers 302")])
async def test_what_is_no_answer_is_said(status: int, words: str) -> None:
    """A redirect is not followed: it could lead a token anywhere."""

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, text="busy", headers={"Location": "http://127.0.0.1:1/"})

    async with answering(refuse) as settings:
        with pytest.raises(PrometheusError, match=words):
            await query_rates(settings, 0, 60_000, 60)


async def test_a_prometheus_that_is_away_is_said() -> None:
    """With its address and what was asked."""
    settings = PrometheusSettings(url="http://127.0.0.1:1", queries=QUERY)
    with pytest.raises(PrometheusError, match=r"http://127\.0\.0\.1:1 gives no bytes_in"):
        await query_rates(settings, 0, 60_000, 60)


async def test_a_range_with_more_points_than_prometheus_gives_is_refused() -> None:
    """Here, not by its error."""
    settings = PrometheusSettings(url="https://prometheus.example", queries=QUERY)
    with pytest.raises(PrometheusError, match="more than 11000 points"):
        await query_rates(settings, 0, 11_000_000, 1)


def test_values_that_are_none_are_left_out() -> None:
    """NaN of a rate over nothing, and what is below 0: neither is a rate."""
    series = of_topic("orders", (1, "NaN"), (2, "+Inf"), (3, "-1"), (4, "0"))

    assert parse("bytes_in", "topic", json.dumps(matrix(series)).encode()) == [Rate("bytes_in", "orders", 4_000, 0.0)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"status": "error", "error": "query timed out", "data": {}}, "query timed out|none of Prometheus'"),
        ({"status": "success", "data": {"resultType": "vector", "result": []}}, "no matrix came"),
        (matrix({"metric": {}, "values": []}), "without the label topic"),
        (matrix({"metric": {"topic": "orders"}}), "KeyError"),
        (matrix({"metric": {"topic": "orders"}, "values": [[1]]}), "ValueError"),
        ([], "TypeError"),
    ],
)
def test_an_answer_of_another_form_is_refused(body: object, words: str) -> None:
    """In words; nothing of it is taken."""
    with pytest.raises(PrometheusError, match=words):
        parse("bytes_in", "topic", json.dumps(body).encode())


@given(st.binary(max_size=200))
def test_any_bytes_end_in_rates_or_in_the_error(data: bytes) -> None:
    """Never in anything else."""
    with contextlib.suppress(PrometheusError):
        parse("bytes_in", "topic", data)


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("ftp://host", None, "is no address"),
        ("prometheus:9090", None, "is no address"),
        ("https://user:secret@host", None, "has a password in it"),
        ("http://host", "secret", "over https alone"),
    ],
)
def test_addresses_that_cannot_be_are_refused(url: str, token: str | None, words: str) -> None:
    """And no secret is in what is said, nor in what a settings value shows."""
    with pytest.raises(ValueError, match=words) as refused:
        PrometheusSettings(url=url, token=token)

    assert "secret" not in str(refused.value)
    assert "secret" not in repr(PrometheusSettings(url="https://host", token="secret"))


def test_the_file_has_an_object_a_line(tmp_path: Path) -> None:
    """As Spark reads JSON; each says its source."""
    write_rates(tmp_path / "rates.json", [Rate("cpu", "broker-1", 60_000, 0.5), Rate("cpu", "broker-2", 60_000, 1.0)])
    (path,) = tmp_path.iterdir()
    first, _ = map(json.loads, path.read_text(encoding="utf-8").splitlines())

    assert first == {"resource": "cpu", "of": "broker-1", "at_ms": 60_000, "value": 0.5, "source": "prometheus"}
