"""The webhook's HTTPS server: TLS alone, limits, and a certificate that is renewed under way."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lab.peers.authority import Authority
from lab.processes.ports import free_port, release_port
from reconciler.webhook import MAX_REVIEW_BYTES, PATH, CertificateError, Webhook


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A port of one's own."""
    taken = free_port()
    yield taken
    release_port(taken)


async def echo(raw: Any) -> dict[str, Any]:
    """Answer what was asked."""
    return {"asked": raw["request"]}


async def post(port: int, authority: Authority, body: bytes) -> tuple[int, Any]:
    """Ask as the API server does."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    url = f"https://127.0.0.1:{port}{PATH}"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, ssl=context) as response:
        return response.status, await response.json() if response.status == HTTPStatus.OK else None


async def test_a_review_is_answered_and_any_other_request_is_refused_with_the_reason(
    authority: Authority, port: int
) -> None:
    """Bad input never ends it."""
    webhook = Webhook(*authority.sign("webhook", "/CN=webhook"), echo)
    await webhook.start("127.0.0.1", port)
    try:
        for body in (b"", b"{", b"[]", b"{}"):
            assert (await post(port, authority, body))[0] == HTTPStatus.BAD_REQUEST
        too_large = b" " * (MAX_REVIEW_BYTES + 1)
        assert (await post(port, authority, too_large))[0] == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        assert await post(port, authority, json.dumps({"request": 5}).encode()) == (HTTPStatus.OK, {"asked": 5})
    finally:
        await webhook.close()


async def test_a_renewed_certificate_serves_the_next_connection(tmp_path: Path, port: int) -> None:
    """And half a one leaves the old one in its place."""
    old, new = (Authority(_folder(tmp_path / name)) for name in ("old", "new"))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    _put(old, certificate, key)
    webhook = Webhook(certificate, key, echo)
    await webhook.start("127.0.0.1", port)
    try:
        certificate.write_text("half", encoding="ascii")
        webhook.renew()
        assert (await post(port, old, b'{"request": 1}'))[0] == HTTPStatus.OK
        _put(new, certificate, key)
        webhook.renew()
        assert (await post(port, new, b'{"request": 1}'))[0] == HTTPStatus.OK
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await post(port, old, b'{"request": 1}')
    finally:
        await webhook.close()


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """At the start, before anything listens."""
    missing, empty = tmp_path / "missing.crt", tmp_path / "empty.key"
    empty.touch()
    with pytest.raises(CertificateError, match=r"missing\.crt cannot be read"):
        Webhook(missing, empty, echo)
    missing.touch()
    with pytest.raises(CertificateError, match="not a certificate and its key"):
        Webhook(missing, empty, echo)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _put(authority: Authority, certificate: Path, key: Path) -> None:
    made = authority.sign("webhook", "/CN=webhook")
    for source, target in zip(made, (certificate, key), strict=True):
        target.write_bytes(source.read_bytes())
