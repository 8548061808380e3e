"""HTTP server of /healthz and /readyz, in a separate thread so that it answers while the event loop hangs.

/healthz: the event loop runs, no batch takes too long, and the watch delivers what lists have returned.
/readyz: everything was listed once, or the process waits for a Lease as a standby; the response names which.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEAT_MAX_S = 15.0
"""Maximum age of the event loop's heartbeat, which comes each second; a large list may delay it by some seconds."""

BATCH_MAX_S = 300.0
"""Maximum duration of a batch: some Admin calls, each with its hard limit of 60 s."""

Check = Callable[[], str | None]
"""Returns the problem, or None."""


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
        """`ready` are checks in addition to `health`; `notes` are returned when all checks pass."""
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
            """Answer 200, or 503 with the problems."""
            asked = checks.get(self.path)
            if asked is None:
                self._answer(HTTPStatus.NOT_FOUND, {"paths": sorted(checks)})
                return
            problems = _results(asked)
            if problems:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, problems)
            else:
                self._answer(HTTPStatus.OK, _results(notes))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it so)
            """Log nothing: probes come every few seconds."""

        def _answer(self, status: HTTPStatus, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            with contextlib.suppress(ConnectionError):  # the client has timed out
                self.end_headers()
                self.wfile.write(data)

    return Handler


def _results(checks: Mapping[str, Check]) -> dict[str, str]:
    return {name: message for name, check in checks.items() if (message := check()) is not None}
