"""How these programs meet the cluster: short back-offs, so that a gap that is measured is the cluster's and not the client's."""

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
"""For every client; an answer takes milliseconds, and a request whose broker was frozen shall not hold others up for long."""
