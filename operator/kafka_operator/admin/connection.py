"""One blocking connection to a cluster: kafka-python's client, opened without a leak, and requests routed to the controller.

Everything here blocks and runs in a worker thread. What it leaves out: deciding whether to try again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import MetadataRequest

from kafka_operator.admin.port import ControllerUnavailableError
from kafka_operator.names import COMPONENT

BOOTSTRAP_TIMEOUT_MS = 5_000
"""How long some broker may take to answer at first: a broker that is alive does so in milliseconds."""

REQUEST_TIMEOUT_MS = 15_000
"""How long an answer may take; longer than the broker's own limit below, so that the broker's words come first."""

OPERATION_TIMEOUT_MS = 8_000
"""How long the controller itself may take for an operation before it answers REQUEST_TIMED_OUT."""

RECONNECT_BACKOFF_MAX_MS = 1_000
"""The engine backs off on its own; the client's own back-off only keeps it from spinning."""

METADATA_MAX_AGE_MS = 60_000
"""New brokers are learnt at the latest after this; a controller that is not known yet makes a new connection at once."""

NOT_CONTROLLER = 41

NO_CONTROLLER = -1

# Every failure that matters is raised; the client's own log repeats each of them for each broker, many times a second.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Connection:
    """An open client; `close` ends its thread and sockets."""

    def __init__(self, bootstrap_servers: Sequence[str]) -> None:
        """Open it; kafka.errors.KafkaError when no broker answers in time."""
        self._client = _open(bootstrap_servers)
        self._controller_id: int | None = None

    @property
    def controller_id(self) -> int | None:
        """Return the controller that requests go to, None before the first one."""
        return self._controller_id

    def to_any(self, request: Any) -> Any:
        """Send a request to some broker and return the answer."""
        return self.to_node(request, None)

    def to_node(self, request: Any, node_id: int | None) -> Any:
        """Send a request to one broker and return the answer."""
        manager = self._client._manager  # noqa: SLF001
        return manager.run(manager.send, request, node_id)

    def to_controller(self, request: Any, codes_of: Callable[[Any], Iterable[int]]) -> Any:
        """Send a request to the controller and return the answer; ControllerUnavailableError when it is none any more."""
        if self._controller_id is None:
            self._controller_id = self._find_controller()
        response = self.to_node(request, self._controller_id)
        if NOT_CONTROLLER in codes_of(response):
            self._controller_id = None
            raise ControllerUnavailableError("the broker that was the controller is not any more")
        return response

    def close(self) -> None:
        """Close it; requests that are under way fail."""
        self._client.close()

    def _find_controller(self) -> int:
        controller_id = int(self.to_any(MetadataRequest(topics=[])).controller_id)
        if controller_id == NO_CONTROLLER:
            raise ControllerUnavailableError("the cluster has no controller at the moment")
        return controller_id


def _open(bootstrap_servers: Sequence[str]) -> Any:
    """Return a client that has found the cluster; when it finds none, end the thread that its constructor left running."""
    opened: list[Any] = []

    def remember(**configs: Any) -> Any:
        opened.append(KafkaNetClient(**configs))
        return opened[-1]

    try:
        return KafkaAdminClient(
            bootstrap_servers=list(bootstrap_servers),
            client_id=COMPONENT,
            bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            reconnect_backoff_max_ms=RECONNECT_BACKOFF_MAX_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            kafka_client=remember,
        )
    except BaseException:
        for client in opened:
            client.close()
        raise
