"""Rates from a Prometheus server: bytes in and out by topic, CPU and network by broker (query_range over HTTPS).

Each value has its resource and the source `prometheus`, which distinguishes it from rates computed from samples. Responses are bounded
before they are parsed, TLS is verified, and a token is sent only over HTTPS.
"""

import json
import math
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from balance_analytics.model.rate_rows import SOURCE
from kafka_operator.prometheus.client import open_session, post_form
from kafka_operator.prometheus.port import PrometheusError, check_server

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""Limit of a response: 20,000 topics over an hour by minutes."""
MAX_SERIES = 50_000
MAX_POINTS = 11_000
"""Of one series: the limit of Prometheus itself."""
TIMEOUT_S = 30.0
MAX_LABEL_CHARACTERS = 1_024


class Query(NamedTuple):
    """PromQL for one resource, and the label that names the topic or instance of a series."""

    expression: str
    label: str


QUERIES: Mapping[str, Query] = {
    "bytes_in": Query('sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[5m]))', "topic"),
    "bytes_out": Query('sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesout_total{topic!=""}[5m]))', "topic"),
    "cpu": Query("sum by (instance) (rate(process_cpu_seconds_total[5m]))", "instance"),
    "network": Query("sum by (instance) (rate(node_network_transmit_bytes_total[5m]))", "instance"),
}
"""By resource, with the metric names of the JMX exporter and the node exporter; other exporters need other queries."""


class Rate(NamedTuple):
    """One value of a topic or an instance at a point in time: bytes/s, or cores for CPU."""

    resource: str
    of: str
    at_ms: int
    value: float
    source: str = SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusSettings:
    """Address, TLS and credentials of the server, and the queries."""

    url: str
    """HTTPS, or HTTP if there is no token."""
    tls: ssl.SSLContext | None = None
    """None: the CA certificates of the system."""
    token: str | None = field(default=None, repr=False)
    queries: Mapping[str, Query] = field(default_factory=lambda: dict(QUERIES))

    def __post_init__(self) -> None:
        check_server(self.url, self.token)


async def query_rates(settings: PrometheusSettings, begin_ms: int, end_ms: int, step_s: int) -> list[Rate]:
    """Query the rates of every resource from `begin_ms` to `end_ms`, both included. Raises PrometheusError."""
    if step_s <= 0 or (end_ms - begin_ms) // (step_s * 1000) >= MAX_POINTS:
        raise PrometheusError(f"a range of {end_ms - begin_ms} ms by {step_s} s has more than {MAX_POINTS} points")
    context = ssl.create_default_context() if settings.tls is None else settings.tls
    found: list[Rate] = []
    async with open_session(settings.token, context, TIMEOUT_S) as session:
        for resource, query in settings.queries.items():
            form = {
                "query": query.expression,
                "start": f"{begin_ms / 1000:.3f}",
                "end": f"{end_ms / 1000:.3f}",
                "step": f"{step_s}s",
            }
            try:
                url = f"{settings.url.rstrip('/')}/api/v1/query_range"
                body = await post_form(session, url, form, MAX_RESPONSE_BYTES)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise PrometheusError(
                    f"query of {resource} at {settings.url} failed: {error or type(error).__name__}"
                ) from None
            found += parse(resource, query.label, body)
    return found


def parse(resource: str, label: str, data: bytes) -> list[Rate]:
    """Decode a response to query_range; NaN, Inf and negative values are skipped. Raises PrometheusError."""
    try:
        body = json.loads(data)
        if body["status"] != "success" or body["data"]["resultType"] != "matrix":
            raise PrometheusError(f"the response for {resource} has no matrix: {str(body.get('error', ''))[:200]}")
        series = body["data"]["result"]
        if len(series) > MAX_SERIES:
            raise PrometheusError(f"{len(series)} series of {resource}; the limit is {MAX_SERIES}")
        return [rate for labelled in series for rate in _rates(resource, label, labelled)]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PrometheusError(
            f"the response for {resource} is not one of Prometheus: {type(error).__name__}: {error}"
        ) from None


def _rates(resource: str, label: str, series: Any) -> list[Rate]:
    name, points = series["metric"].get(label), series["values"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_LABEL_CHARACTERS or len(points) > MAX_POINTS:
        raise ValueError(f"a series without the label {label}, or of more than {MAX_POINTS} points")
    read = ((round(float(at_s) * 1000), float(value)) for at_s, value in points)
    return [Rate(resource, name, at_ms, value) for at_ms, value in read if math.isfinite(value) and value >= 0]


def write_rates(path: Path, rates: Iterable[Rate]) -> None:
    """Write rates as JSON, one object per line; the file is replaced atomically. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(rate._asdict(), separators=(",", ":")) + "\n" for rate in rates)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
