"""Rates from a Prometheus, where there is one: bytes in and out by topic, CPU and network by broker (query_range over HTTPS).

They stand beside samples and never in their place without saying so: each value has its resource and the source `prometheus`.
Everything is bounded before it is parsed, TLS is verified, and a token goes over HTTPS alone. Leaves out who uses them (`jobs/rates.py`).
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

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""20,000 topics over an hour of minutes."""
MAX_SERIES = 50_000
MAX_POINTS = 11_000
"""Of one series: what Prometheus itself answers at the most."""
TIMEOUT_S = 30.0
READ_BYTES = 65_536
MAX_LABEL_CHARACTERS = 1_024


class PrometheusError(Exception):
    """No rates came; says why, and nothing of the token."""


class Query(NamedTuple):
    """What is asked for one resource, and the label that tells whose a series is."""

    expression: str
    label: str


QUERIES: Mapping[str, Query] = {
    "bytes_in": Query('sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[5m]))', "topic"),
    "bytes_out": Query('sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesout_total{topic!=""}[5m]))', "topic"),
    "cpu": Query("sum by (instance) (rate(process_cpu_seconds_total[5m]))", "instance"),
    "network": Query("sum by (instance) (rate(node_network_transmit_bytes_total[5m]))", "instance"),
}
"""By resource: names as the JMX exporter and the node exporter give them; a cluster with others is asked by its own."""


class Rate(NamedTuple):
    """One value: bytes/s, or cores of CPU, of a topic or an instance at a time."""

    resource: str
    of: str
    at_ms: int
    value: float
    source: str = SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusSettings:
    """Where it is, and how it is reached."""

    url: str
    """HTTPS; HTTP is taken where no token is given."""
    tls: ssl.SSLContext | None = None
    """None: what the system trusts."""
    token: str | None = field(default=None, repr=False)
    queries: Mapping[str, Query] = field(default_factory=lambda: dict(QUERIES))

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{self.url!r:.200} is no address of a Prometheus: https://HOST:PORT")
        if parts.username or parts.password:
            raise ValueError("the address of a Prometheus has a password in it: give a token's file instead")
        if self.token is not None and parts.scheme != "https":
            raise ValueError("a token is sent over https alone")


async def query_rates(settings: PrometheusSettings, begin_ms: int, end_ms: int, step_s: int) -> list[Rate]:
    """Ask for every resource's rates from `begin_ms` to `end_ms`, both included. Raises PrometheusError."""
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
                body = await _ask(session, f"{settings.url.rstrip('/')}/api/v1/query_range", form)
            except (aiohttp.ClientError, TimeoutError, OSError) as why:
                raise PrometheusError(f"{settings.url} gives no {resource}: {why or type(why).__name__}") from None
            found += parse(resource, query.label, body)
    return found


async def _ask(session: aiohttp.ClientSession, url: str, form: Mapping[str, str]) -> bytes:
    """Return an answer's bytes, as far as the limit lets them come; a redirect is not followed, as it could lead anywhere."""
    async with session.post(url, data=form, allow_redirects=False) as response:
        data = bytearray()
        async for chunk in response.content.iter_chunked(READ_BYTES):
            data += chunk
            if len(data) > MAX_ANSWER_BYTES:
                raise PrometheusError(f"{url} answers more than {MAX_ANSWER_BYTES} bytes")
        if response.status != 200:  # OK
            raise PrometheusError(f"{url} answers {response.status}: {bytes(data[:200]).decode(errors='replace')}")
        return bytes(data)


def parse(resource: str, label: str, data: bytes) -> list[Rate]:
    """Read an answer to query_range; values that are no numbers (NaN, Inf) or below 0 are none. Raises PrometheusError."""
    try:
        body = json.loads(data)
        if body["status"] != "success" or body["data"]["resultType"] != "matrix":
            raise PrometheusError(f"no matrix came for {resource}: {str(body.get('error', ''))[:200]}")
        series = body["data"]["result"]
        if len(series) > MAX_SERIES:
            raise PrometheusError(f"{len(series)} series of {resource}; {MAX_SERIES} are read at the most")
        return [rate for one in series for rate in _rates(resource, label, one)]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as why:
        raise PrometheusError(
            f"the answer for {resource} is none of Prometheus': {type(why).__name__}: {why}"
        ) from None


def _rates(resource: str, label: str, series: Any) -> list[Rate]:
    name, points = series["metric"].get(label), series["values"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_LABEL_CHARACTERS or len(points) > MAX_POINTS:
        raise ValueError(f"a series without the label {label}, or of more than {MAX_POINTS} points")
    read = ((round(float(at_s) * 1000), float(value)) for at_s, value in points)
    return [Rate(resource, name, at_ms, value) for at_ms, value in read if math.isfinite(value) and value >= 0]


def write_rates(path: Path, rates: Iterable[Rate]) -> None:
    """Write rates as JSON, one object a line; the file appears whole or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(one._asdict(), separators=(",", ":")) + "\n" for one in rates)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
