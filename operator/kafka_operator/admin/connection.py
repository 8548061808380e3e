"""One blocking connection to a cluster: kafka-python's client, opened without a leak, and requests routed to the controller.

Everything here blocks and runs in a worker thread. What it leaves out: deciding whether to try again, and TLS contexts (tls).
"""

from __future__ import annotations

import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from kafka_operator.admin.connection_errors import classify_connection_error
from kafka_operator.admin.port import ControllerUnavailableError
from kafka_operator.decide.kafka_errors import NOT_CONTROLLER
from kafka_operator.names import COMPONENT
from kafka_operator.resources.security import PLAINTEXT, Security

BOOTSTRAP_TIMEOUT_MS = 5_000
"""Timeout of the first response of any broker: a live broker answers within milliseconds."""

REQUEST_TIMEOUT_MS = 15_000
"""Timeout of a response; longer than the broker's own limit below, so that the broker's error arrives first."""

OPERATION_TIMEOUT_MS = 8_000
"""Time limit of an operation on the controller before it answers REQUEST_TIMED_OUT."""

RECONNECT_BACKOFF_MAX_MS = 1_000
"""The engine backs off on its own; the client's own back-off only keeps it from spinning."""

METADATA_MAX_AGE_MS = 60_000
"""New brokers are discovered at the latest after this time; an unknown controller opens a new connection at once."""

MAX_FAILURES = 32
"""Number of connection failures that are kept: some for each of several bootstrap brokers."""

LAST_RESPONSE_S = 0.05
"""Delay before a connection that the broker has closed is closed: its last response is processed in well under a millisecond."""

NO_CONTROLLER = -1

# Every failure that matters is raised; the client's own log repeats each of them for each broker, many times a second.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Connection:
    """An open client; `close` ends its thread and sockets."""

    def __init__(
        self, bootstrap_servers: Sequence[str], security: Security = PLAINTEXT, context: ssl.SSLContext | None = None
    ) -> None:
        """Open it; kafka.errors.KafkaError when no broker answers in time, ConnectionRejectedError when all of them reject the connection."""
        self._client = _open(bootstrap_servers, security, context)
        self._controller_id: int | None = None

    @property
    def controller_id(self) -> int | None:
        """Return the controller that receives requests, None before the first one."""
        return self._controller_id

    def to_any(self, request: Any) -> Any:
        """Send a request to some broker and return the answer."""
        return self.to_node(request, None)

    def to_node(self, request: Any, node_id: int | None) -> Any:
        """Send a request to one broker and return the answer."""
        manager = self._client._manager  # noqa: SLF001
        return manager.run(manager.send, request, node_id)

    def to_controller(self, request: Any, codes_of: Callable[[Any], Iterable[int]]) -> Any:
        """Send a request to the controller and return the response; ControllerUnavailableError when it is no longer the controller."""
        if self._controller_id is None:
            self._controller_id = self._find_controller()
        response = self.to_node(request, self._controller_id)
        if NOT_CONTROLLER in codes_of(response):
            self._controller_id = None
            raise ControllerUnavailableError("the broker is no longer the controller")
        return response

    def close(self) -> None:
        """Close it; requests in progress fail."""
        self._client.close()

    def _find_controller(self) -> int:
        controller_id = int(self.to_any(MetadataRequest(topics=[])).controller_id)
        if controller_id == NO_CONTROLLER:
            raise ControllerUnavailableError("the cluster has no active controller")
        return controller_id


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # the client publishes no types
    """Records why connections failed: the client does not report it while it searches for a first broker.

    It also processes a response that arrives together with the end of the stream, which the client itself drops: a rejected
    login may arrive that way.
    """

    def __init__(self, net: Any, **configs: Any) -> None:
        super().__init__(net, **configs)
        self.failures: deque[BaseException] = deque(maxlen=MAX_FAILURES)

    async def _connect(self, node: Any, conn: Any, *arguments: Any, **named: Any) -> None:
        conn.init_future.add_errback(self.failures.append)
        await super()._connect(node, conn, *arguments, **named)

    async def _build_transport(self, *arguments: Any, **named: Any) -> Any:
        transport = await super()._build_transport(*arguments, **named)
        receive = transport._sock_recv  # noqa: SLF001

        def receive_data_first() -> tuple[bytes, Exception | None]:
            data, error = receive()
            if data and error is not None:
                self._net.call_later(LAST_RESPONSE_S, lambda: transport.abort(error))
                return data, None
            return data, error

        transport._sock_recv = receive_data_first  # noqa: SLF001
        return transport


def _open(bootstrap_servers: Sequence[str], security: Security, context: ssl.SSLContext | None) -> Any:
    """Return a connected client; if no broker answers, end the thread that its constructor has started."""
    opened: list[tuple[Any, _Manager]] = []

    def remember(**configs: Any) -> Any:
        net = NetworkSelector(**configs)
        manager = _Manager(net, **configs)
        opened.append((KafkaNetClient(net, manager), manager))
        return opened[-1][0]

    try:
        return KafkaAdminClient(
            bootstrap_servers=list(bootstrap_servers),
            client_id=COMPONENT,
            bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            reconnect_backoff_max_ms=RECONNECT_BACKOFF_MAX_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            kafka_client=remember,
            security_protocol=security.protocol,
            ssl_context=context,
            **_login(security),
        )
    except BaseException as error:
        failures = [failure for _, manager in opened for failure in manager.failures]
        for client, _ in opened:
            client.close()
        refusal = classify_connection_error([error, *failures]) if isinstance(error, KafkaError) else None
        if refusal is not None:
            raise refusal from None
        raise


def _login(security: Security) -> dict[str, str]:
    login = security.login
    if login is None:
        return {}
    username = login.username
    if login.mechanism.startswith("SCRAM"):  # RFC 5802's saslname, which the client does not escape
        username = username.replace("=", "=3D").replace(",", "=2C")
    return {
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": username,
        "sasl_plain_password": login.password,
    }
