"""Settings of these programs' clients: short back-offs, so that a measured gap is the cluster's and not the client's."""

from __future__ import annotations

import os
from typing import Any

BOOTSTRAP = os.environ.get("BOOTSTRAP", "")

PATIENT: dict[str, Any] = {
    "bootstrap_servers": BOOTSTRAP,
    "bootstrap_timeout_ms": 60_000,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 250,
    "retry_backoff_ms": 50,
    "request_timeout_ms": 5_000,
}
"""For every client; an answer takes milliseconds, and a request to a frozen broker must not delay others for long."""
