"""/healthz and /readyz, answered from a thread of their own: a loop that hangs cannot say that it is well.

Healthy is an operator that makes progress: its loop turns, no batch takes for ever, and the watch brings what lists have shown.
Ready is one that has seen everything once, or one that stands by for a Lease, which its answer then says.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEAT_MAX_S = 15.0
"""The loop shows each second that it lives; a big list may hold it up for some."""

BATCH_MAX_S = 300.0
"""The longest batch that is no accident: some Admin calls, each with its last-resort limit of 60 s."""

Check = Callable[[], str | None]
"""Returns what is wrong, None when all is well."""


class Probes:
    """The HTTP server; it listens from the start."""

    def __init__(
        self,
        address: str,
        port: int,
        *,
        health: Mapping[str, Check],
        ready: Mapping[str, Check],
        notes: Mapping[str, Check] | None = None,
    ) -> None:
        """`ready` is asked for what `health` does not cover already; `notes` are told where all is well."""
        checks = {"/healthz": dict(health), "/readyz": {**health, **ready}}
        self._server = ThreadingHTTPServer((address, port), _handler(checks, notes or {}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(checks: Mapping[str, Mapping[str, Check]], notes: Mapping[str, Check]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers the two paths."""

        def do_GET(self) -> None:
            """Answer 200, or 503 with what is wrong."""
            asked = checks.get(self.path)
            if asked is None:
                self._answer(HTTPStatus.NOT_FOUND, {"paths": sorted(checks)})
                return
            problems = _failed_checks(asked)
            if problems:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, problems)
            else:
                self._answer(HTTPStatus.OK, _failed_checks(notes))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it so)
            """Say nothing: probes come every few seconds."""

        def _answer(self, status: HTTPStatus, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            with contextlib.suppress(ConnectionError):  # who asked has waited long enough and left
                self.end_headers()
                self.wfile.write(data)

    return Handler


def _failed_checks(checks: Mapping[str, Check]) -> dict[str, str]:
    return {name: words for name, check in checks.items() if (words := check()) is not None}
