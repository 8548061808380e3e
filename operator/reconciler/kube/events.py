"""Body of a core/v1 Event about a resource, as shown by `kubectl describe`."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from reconciler.kube.port import NewEvent
from reconciler.names import API_VERSION, COMPONENT
from reconciler.resources.metadata import write_time

MAX_MESSAGE_BYTES = 1024
"""The API server refuses longer ones (validation of core/v1 Event)."""

MAX_NAME_LENGTH = 230
"""Leaves room for the suffix in the 253 characters of an object's name."""


def event_body(event: NewEvent) -> dict[str, Any]:
    """Return the event in the API's form."""
    moment = write_time(datetime.now(UTC))
    return {
        "metadata": {
            "name": f"{event.key.name[:MAX_NAME_LENGTH]}.{_digest(event)}",
            "namespace": event.key.namespace,
        },
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": event.key.kind.name,
            "namespace": event.key.namespace,
            "name": event.key.name,
            "uid": event.uid,
            "resourceVersion": event.resource_version,
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": _shortened(event.message),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _digest(event: NewEvent) -> str:
    """Return a digest that is equal for equal events about the same version of an object, in every process."""
    identity = (event.uid, event.resource_version, str(event.warning), event.reason, event.message)
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]


def _shortened(message: str) -> str:
    """Cut to the API server's limit, which counts bytes."""
    data = message.encode()
    if len(data) <= MAX_MESSAGE_BYTES:
        return message
    return data[: MAX_MESSAGE_BYTES - 3].decode(errors="ignore") + "..."
