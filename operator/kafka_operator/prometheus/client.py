"""Instant queries of a Prometheus server over HTTP, and the bounded request that range queries use too.

TLS is verified, a token is sent only over HTTPS, redirects are not followed, since they could send the token to another server, and a
response is bounded before it is parsed.
"""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import Mapping
from functools import lru_cache

import aiohttp

from kafka_node.http_body import ResponseTooLargeError, read_at_most
from kafka_operator.admin.port import BadCredentialsError
from kafka_operator.admin.tls import make_context
from kafka_operator.prometheus.port import PrometheusError, PrometheusServer
from kafka_operator.resources.security import Security

QUERY_TIMEOUT_S = 3.0
"""A query that takes longer cannot be evaluated every few seconds, and delays the other Reassignments of the cluster."""

MAX_VALUE_BYTES = 64 * 1024
"""Limit of a response with one value: a series with the most and longest labels is smaller."""


MAX_CONTEXTS = 64
"""TLS contexts that are kept, one for each set of authorities: more than one operator has Clusters with different ones."""


class HttpPrometheus:
    """Prometheus servers over HTTP; each query has a connection of its own."""

    async def query(self, server: PrometheusServer, expression: str) -> float:
        """Return the current value of an expression with exactly one value; PrometheusError otherwise."""
        try:
            context = context_of(server.ca)
        except BadCredentialsError as error:
            raise PrometheusError(f"the certificate authorities cannot be used: {error}") from None
        form = {"query": expression, "timeout": f"{QUERY_TIMEOUT_S:g}s"}
        try:
            async with open_session(server.token, context, QUERY_TIMEOUT_S) as session:
                body = await post_form(session, f"{server.url.rstrip('/')}/api/v1/query", form, MAX_VALUE_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise PrometheusError(f"the request to {server.url} failed: {type(error).__name__}") from None
        return value_of(body)


@lru_cache(MAX_CONTEXTS)
def context_of(ca: str | None) -> ssl.SSLContext:
    """Return the context that trusts these authorities, None for the system's; BadCredentialsError if they cannot be used.

    It is kept: reading the authorities of a system takes some 10 ms, and guards send queries every few seconds.
    """
    context = make_context(Security(tls=True, ca=ca))
    assert context is not None
    return context


def open_session(token: str | None, context: ssl.SSLContext, timeout_s: float) -> aiohttp.ClientSession:
    """Return a session that uses this token and these authorities, and no proxy of the environment."""
    return aiohttp.ClientSession(
        headers={} if token is None else {"Authorization": f"Bearer {token}"},
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        connector=aiohttp.TCPConnector(ssl=context),
        trust_env=False,
    )


async def post_form(session: aiohttp.ClientSession, url: str, form: Mapping[str, str], limit_bytes: int) -> bytes:
    """Return the bytes of a response; PrometheusError if there are more, or if its status is not 200."""
    async with session.post(url, data=form, allow_redirects=False) as response:
        try:
            data = await read_at_most(response, limit_bytes)
        except ResponseTooLargeError:
            raise PrometheusError(f"the response of {url} has more than {limit_bytes} bytes") from None
        if response.status != 200:  # OK
            raise PrometheusError(f"{url} returned status {response.status}: {data[:200].decode(errors='replace')}")
        return data


def value_of(data: bytes) -> float:
    """Decode a response to an instant query that has one value: a scalar, or a vector of one series.

    >>> value_of(b'{"status": "success", "data": {"resultType": "scalar", "result": [1.0, "2.5"]}}')
    2.5
    """
    try:
        body = json.loads(data)
        if body["status"] != "success":
            raise PrometheusError(f"the query failed: {body.get('error', '')!s:.200}")
        kind, result = body["data"]["resultType"], body["data"]["result"]
        if kind == "vector":
            if len(result) != 1:
                raise PrometheusError(_not_one(len(result)))
            result = result[0]["value"]
        elif kind != "scalar":
            raise PrometheusError(f"the result is a {kind!s:.20}, not one value")
        value = float(result[1])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PrometheusError(f"the response is not one of Prometheus: {type(error).__name__}") from None
    if not math.isfinite(value):
        raise PrometheusError(f"the value is {value}")
    return value


def _not_one(series: int) -> str:
    if not series:
        return "the query found nothing: check its metric names and labels"
    return f"the query found {series} series; aggregate them to one, for example with sum() or max()"
