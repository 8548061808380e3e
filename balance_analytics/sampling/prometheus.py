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
from urllib.parse import urlsplit

import aiohttp

from balance_analytics.model.rate_rows import SOURCE
from kafka_node.http_body import ResponseTooLargeError, read_at_most

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""Limit of a response: 20,000 topics over an hour by minutes."""
MAX_SERIES = 50_000
MAX_POINTS = 11_000
"""Of one series: the limit of Prometheus itself."""
TIMEOUT_S = 30.0
MAX_LABEL_CHARACTERS = 1_024


class PrometheusError(Exception):
    """The rates could not be read; the message has the reason, and never the token."""


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
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{self.url!r:.200} is not a valid URL of a Prometheus server: https://HOST:PORT")
        if parts.username or parts.password:
            raise ValueError("the URL of Prometheus must not contain a password: use a token file instead")
        if self.token is not None and parts.scheme != "https":
            raise ValueError("a token is sent only over https")


async def query_rates(settings: PrometheusSettings, begin_ms: int, end_ms: int, step_s: int) -> list[Rate]:
    """Query the rates of every resource from `begin_ms` to `end_ms`, both included. Raises PrometheusError."""
    if step_s <= 0 or (end_ms - begin_ms) // (step_s * 1000) >= MAX_POINTS:
        raise PrometheusError(f"a range of {end_ms - begin_ms} ms by {step_s} s has more than {MAX_POINTS} points")
    headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token}"}
    context = ssl.create_default_context() if settings.tls is None else settings.tls
    found: list[Rate] = []
    async with aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        connector=aiohttp.TCPConnector(ssl=context),
        trust_env=False,
    ) as session:
        for resource, query in settings.queries.items():
            form = {
                "query": query.expression,
                "start": f"{begin_ms / 1000:.3f}",
                "end": f"{end_ms / 1000:.3f}",
                "step": f"{step_s}s",
            }
            try:
                body = await _post(session, f"{settings.url.rstrip('/')}/api/v1/query_range", form)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise PrometheusError(
                    f"query of {resource} at {settings.url} failed: {error or type(error).__name__}"
                ) from None
            found += parse(resource, query.label, body)
    return found


async def _post(session: aiohttp.ClientSession, url: str, form: Mapping[str, str]) -> bytes:
    """Return the bytes of a response, up to the limit. Redirects are not followed, as they could send the token to another server."""
    async with session.post(url, data=form, allow_redirects=False) as response:
        try:
            data = await read_at_most(response, MAX_RESPONSE_BYTES)
        except ResponseTooLargeError:
            raise PrometheusError(f"the response of {url} has more than {MAX_RESPONSE_BYTES} bytes") from None
        if response.status != 200:  # OK
            raise PrometheusError(f"{url} returned status {response.status}: {data[:200].decode(errors='replace')}")
        return data


def parse(resource: str, label: str, data: bytes) -> list[Rate]:
    """Decode a response to query_range; NaN, Inf and negative values are skipped. Raises PrometheusError."""
    try:
        body = json.loads(data)
        if body["status"] != "success" or body["data"]["resultType"] != "matrix":
            raise PrometheusError(f"the response for {resource} has no matrix: {str(body.get('error', ''))[:200]}")
        series = body["data"]["result"]
        if len(series) > MAX_SERIES:
            raise PrometheusError(f"{len(series)} series of {resource}; the limit is {MAX_SERIES}")
        return [rate for one in series for rate in _rates(resource, label, one)]
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
            file.writelines(json.dumps(one._asdict(), separators=(",", ":")) + "\n" for one in rates)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
