"""Instant queries of Prometheus: one value, within limits, over verified TLS. Source: Prometheus' HTTP API (query)."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.prometheus import client
from kafka_operator.prometheus.client import HttpPrometheus, value_of
from kafka_operator.prometheus.port import PrometheusError, PrometheusServer
from lab.peers.authority import Authority
from lab.processes.ports import free_port, release_port

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def body(kind: str, result: Any, status: str = "success") -> bytes:
    """A response."""
    return json.dumps({"status": status, "error": "bad query", "data": {"resultType": kind, "result": result}}).encode()


def series(*values: str) -> list[dict[str, Any]]:
    """A vector."""
    return [{"metric": {"broker": str(index)}, "value": [1.5, value]} for index, value in enumerate(values)]


@contextlib.asynccontextmanager
async def answering(handler: Handler, **tls: Any) -> AsyncIterator[str]:
    """The address of a server with this handler."""
    application = web.Application()
    application.add_routes([web.post("/prefix/api/v1/query", handler)])
    runner, port = web.AppRunner(application), free_port()
    try:
        await runner.setup()
        await web.TCPSite(runner, "localhost", port, **tls).start()
        yield f"{'https' if tls else 'http'}://localhost:{port}/prefix/"
    finally:
        await runner.cleanup()
        release_port(port)


def test_a_vector_of_one_series_and_a_scalar_have_a_value() -> None:
    """Numbers are strings in Prometheus' JSON."""
    assert value_of(body("vector", series("0.25"))) == 0.25
    assert value_of(body("scalar", [1.5, "3"])) == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (body("vector", []), "the query found nothing"),
        (body("vector", series("1", "2")), "the query found 2 series; aggregate them"),
        (body("matrix", []), "the result is a matrix, not one value"),
        (body("vector", [], status="error"), "the query failed: bad query"),
        (body("vector", series("NaN")), "the value is nan"),
        (body("scalar", [1.5, "+Inf"]), "the value is inf"),
        (body("vector", [{"metric": {}}]), "not one of Prometheus: KeyError"),
        (body("scalar", [1.5]), "not one of Prometheus: IndexError"),
        (b"<html>", "not one of Prometheus"),
    ],
)
def test_any_other_result_is_an_error_with_its_reason(data: bytes, message: str) -> None:
    """A division by zero, a wrong query, a server that is not Prometheus: no value, and never 0."""
    with pytest.raises(PrometheusError, match=message.replace("+", r"\+")):
        value_of(data)


@given(st.binary(max_size=200))
def test_any_bytes_result_in_a_value_or_in_the_error(data: bytes) -> None:
    """In no other exception."""
    with contextlib.suppress(PrometheusError):
        value_of(data)


async def test_a_query_is_sent_over_verified_tls_with_the_token(authority: Authority, tmp_path: Path) -> None:
    """A server whose certificate another authority signed gets neither query nor token."""
    asked: list[tuple[str, str]] = []
    trusted = authority.certificate.read_text(encoding="ascii")
    other = Authority(tmp_path).certificate.read_text(encoding="ascii")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.sign("prometheus", "/CN=prometheus"))

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.headers["Authorization"], (await request.post())["query"]))
        return web.Response(body=body("vector", series("0.5")))

    async with answering(answer, ssl_context=context) as url:
        assert await HttpPrometheus().query(PrometheusServer(url, trusted, "abc"), "up") == 0.5
        with pytest.raises(PrometheusError, match=r"the request to .* failed: ClientConnectorCertificateError"):
            await HttpPrometheus().query(PrometheusServer(url, other, "abc"), "up")

    assert asked == [("Bearer abc", "up")]


def test_queries_with_the_same_authorities_share_a_context(authority: Authority) -> None:
    """Authorities that were replaced in the Secret get another one."""
    trusted = authority.certificate.read_text(encoding="ascii")

    assert client.context_of(trusted) is client.context_of(trusted)
    assert client.context_of(trusted) is not client.context_of(f"{trusted}\n")


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"status": 503, "text": "busy"}, "returned status 503: busy"),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, "returned status 302"),
        ({"body": b" " * 100_000}, f"more than {client.MAX_VALUE_BYTES} bytes"),
    ],
)
async def test_errors_redirects_and_long_responses_are_rejected(response: dict[str, Any], message: str) -> None:
    """A redirect could send the token to another server; a response is bounded before it is parsed."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(**response)

    async with answering(answer) as url:
        with pytest.raises(PrometheusError, match=message):
            await HttpPrometheus().query(PrometheusServer(url), "up")


async def test_an_unreachable_server_and_invalid_authorities_are_reported() -> None:
    """The message has the address, and nothing of the Secret."""
    with pytest.raises(PrometheusError, match=r"the request to http://127\.0\.0\.1:1 failed"):
        await HttpPrometheus().query(PrometheusServer("http://127.0.0.1:1"), "up")
    with pytest.raises(PrometheusError, match="the certificate authorities cannot be used: not a certificate in PEM"):
        await HttpPrometheus().query(PrometheusServer("https://127.0.0.1:1", "secret text"), "up")


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("prometheus:9090", None, "is not a valid URL"),
        ("https://user:secret@host", None, "must not contain a password"),
        ("http://host", "abc", "only over https"),
        ("https://host", "a\nb", "characters that a header of HTTP cannot have"),
        ("https://host", "", "the token is empty"),
    ],
)
def test_an_address_that_cannot_be_used_is_rejected(url: str, token: str | None, message: str) -> None:
    """Before anything is sent; the token is in no repr."""
    with pytest.raises(ValueError, match=message):
        PrometheusServer(url, token=token)
    assert "abc" not in repr(PrometheusServer("https://host", token="abc"))
