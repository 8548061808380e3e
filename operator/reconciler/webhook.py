"""HTTPS server of the admission webhook (ValidatingWebhookConfiguration): limits, TLS and certificate rotation.

The certificate's files are checked every few seconds, and a renewed certificate serves the next connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web

PATH = "/validate"

APPROVE_PATH = "/approve"
"""Reviews of approvals, if the operator checks them."""

MAX_REVIEW_BYTES = 8 * 1024 * 1024
"""A review contains the old and the new resource, and the API server accepts requests of 3 MiB."""

RENEWAL_POLL_S = 10.0
"""Interval of checks of the certificate's files: a Secret takes a minute to get into the pod."""

Handle = Callable[[Any], Awaitable[dict[str, Any]]]
"""Returns the response to a review; KeyError, TypeError or ValueError if the review is invalid."""

log = logging.getLogger(__name__)


class CertificateError(Exception):
    """Certificate or key cannot be used."""


class Webhook:
    """Serves `PATH`, and `APPROVE_PATH` if there is a handler for it, between `start` and `close`."""

    def __init__(
        self, certificate: Path, private_key: Path, handle: Handle, handle_approval: Handle | None = None
    ) -> None:
        """Load certificate (PEM, with its chain) and key; CertificateError names the files that cannot be used."""
        self._certificate = certificate
        self._private_key = private_key
        self._handlers = {PATH: handle} | ({} if handle_approval is None else {APPROVE_PATH: handle_approval})
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._loaded = self._state()
        self._load()
        self._runner: web.AppRunner | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def start(self, address: str, port: int) -> None:
        """Listen."""
        app = web.Application(client_max_size=MAX_REVIEW_BYTES)
        for path in self._handlers:
            app.router.add_post(path, self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port, ssl_context=self._context).start()
        self._renewal = asyncio.create_task(self._renew(), name="webhook certificate")
        log.info("Webhook listening", extra={"address": address, "port": port})

    async def close(self) -> None:
        """Finish the requests in progress, and stop."""
        if self._renewal is not None:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            answer = await self._handlers[request.path](json.loads(await request.read()))
        except (KeyError, TypeError, ValueError) as error:
            log.warning("Ignoring invalid AdmissionReview", extra={"error": repr(error)[:200]})
            return web.json_response({"error": "request is not a valid AdmissionReview"}, status=HTTPStatus.BAD_REQUEST)
        return web.json_response(answer)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_POLL_S)
            self.renew()

    def renew(self) -> None:
        """Reload the files if they have changed; invalid files leave the previous certificate in use."""
        try:
            state = self._state()
            if state == self._loaded:
                return
            self._load()
        except CertificateError as error:  # the files may be half written: retried at the next check
            log.warning("Failed to reload webhook certificate; keeping the previous one", extra={"error": str(error)})
            return
        self._loaded = state
        log.info("Reloaded webhook certificate")

    def _state(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [path.stat() for path in (self._certificate, self._private_key)]
        except OSError as error:
            raise CertificateError(f"{error.filename} cannot be read: {error.strerror}") from error
        return tuple((item.st_mtime_ns, item.st_ino) for item in found)

    def _load(self) -> None:
        try:
            self._context.load_cert_chain(self._certificate, self._private_key)
        except (OSError, ssl.SSLError) as error:
            message = f"{self._certificate} and {self._private_key} are not a certificate and its key: {error}"
            raise CertificateError(message) from error
