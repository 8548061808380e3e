"""Rates from Prometheus: queries, decoding of responses, and limits.

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
    PrometheusSettings,
    Query,
    Rate,
    parse,
    query_rates,
    write_rates,
)
from kafka_operator.prometheus.port import PrometheusError
from lab.processes.ports import free_port, release_port

QUERY = {"bytes_in": Query("sum by (topic) (rate(in[5m]))", "topic")}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def matrix(*series: dict[str, Any]) -> dict[str, Any]:
    """A valid response."""
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def of_topic(name: str, *values: tuple[float, str]) -> dict[str, Any]:
    """One series."""
    return {"metric": {"topic": name}, "values": [list(value) for value in values]}


@contextlib.asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[PrometheusSettings]:
    """A server with this handler, and the settings to reach it."""
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


async def test_rates_are_queried_by_resource_and_have_their_source() -> None:
    """One query per resource, for the whole range."""
    queries: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(dict(await request.post()))
        return web.json_response(matrix(of_topic("orders", (60, "1.5"), (120, "2"))))

    async with answering(answer) as settings:
        found = await query_rates(settings, 60_000, 120_000, 60)

    assert queries == [{"query": QUERY["bytes_in"].expression, "start": "60.000", "end": "120.000", "step": "60s"}]
    assert found == [
        Rate("bytes_in", "orders", 60_000, 1.5, "prometheus"),
        Rate("bytes_in", "orders", 120_000, 2.0, "prometheus"),
    ]


async def test_a_response_over_the_limit_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is complete, and before it is parsed."""
    monkeypatch.setattr(prometheus, "MAX_RESPONSE_BYTES", 1_000)

    async def flood(_: web.Request) -> web.Response:
        return web.Response(body=b" " * 200_000)

    async with answering(flood) as settings:
        with pytest.raises(PrometheusError, match="more than 1000 bytes"):
            await query_rates(settings, 0, 60_000, 60)


@pytest.mark.parametrize(("status", "message"), [(503, "returned status 503: busy"), (302, "returned status 302")])
async def test_an_error_status_is_reported_and_redirects_are_not_followed(status: int, message: str) -> None:
    """A redirect could send the token to another server."""

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, text="busy", headers={"Location": "http://127.0.0.1:1/"})

    async with answering(refuse) as settings:
        with pytest.raises(PrometheusError, match=message):
            await query_rates(settings, 0, 60_000, 60)


async def test_an_unreachable_prometheus_is_reported() -> None:
    """With its URL and the resource."""
    settings = PrometheusSettings(url="http://127.0.0.1:1", queries=QUERY)
    with pytest.raises(PrometheusError, match=r"query of bytes_in at http://127\.0\.0\.1:1 failed"):
        await query_rates(settings, 0, 60_000, 60)


async def test_a_range_with_more_points_than_prometheus_returns_is_rejected() -> None:
    """Before the query is sent."""
    settings = PrometheusSettings(url="https://prometheus.example", queries=QUERY)
    with pytest.raises(PrometheusError, match="more than 11000 points"):
        await query_rates(settings, 0, 11_000_000, 1)


def test_values_that_are_not_rates_are_skipped() -> None:
    """NaN, infinity and negative values."""
    series = of_topic("orders", (1, "NaN"), (2, "+Inf"), (3, "-1"), (4, "0"))

    assert parse("bytes_in", "topic", json.dumps(matrix(series)).encode()) == [Rate("bytes_in", "orders", 4_000, 0.0)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"status": "error", "error": "query timed out", "data": {}}, "query timed out|not one of Prometheus"),
        ({"status": "success", "data": {"resultType": "vector", "result": []}}, "has no matrix"),
        (matrix({"metric": {}, "values": []}), "without the label topic"),
        (matrix({"metric": {"topic": "orders"}}), "KeyError"),
        (matrix({"metric": {"topic": "orders"}, "values": [[1]]}), "ValueError"),
        ([], "TypeError"),
    ],
)
def test_a_response_of_another_form_is_rejected(body: object, message: str) -> None:
    """No part of it is used."""
    with pytest.raises(PrometheusError, match=message):
        parse("bytes_in", "topic", json.dumps(body).encode())


@given(st.binary(max_size=200))
def test_any_bytes_result_in_rates_or_in_the_error(data: bytes) -> None:
    """In no other exception."""
    with contextlib.suppress(PrometheusError):
        parse("bytes_in", "topic", data)


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("ftp://host", None, "is not a valid URL"),
        ("prometheus:9090", None, "is not a valid URL"),
        ("https://user:secret@host", None, "must not contain a password"),
        ("http://host", "secret", "only over https"),
    ],
)
def test_invalid_urls_are_rejected(url: str, token: str | None, message: str) -> None:
    """Neither errors nor the repr of settings contain secrets."""
    with pytest.raises(ValueError, match=message) as rejected:
        PrometheusSettings(url=url, token=token)

    assert "secret" not in str(rejected.value)
    assert "secret" not in repr(PrometheusSettings(url="https://host", token="secret"))


def test_the_file_has_one_object_per_line(tmp_path: Path) -> None:
    """The JSON format of Spark; each object has its source."""
    write_rates(tmp_path / "rates.json", [Rate("cpu", "broker-1", 60_000, 0.5), Rate("cpu", "broker-2", 60_000, 1.0)])
    (path,) = tmp_path.iterdir()
    first, _ = map(json.loads, path.read_text(encoding="utf-8").splitlines())

    assert first == {"resource": "cpu", "of": "broker-1", "at_ms": 60_000, "value": 0.5, "source": "prometheus"}
