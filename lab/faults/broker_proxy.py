"""Proxy in front of a broker: records the requests of controllers, and can hold them back.

The broker advertises the proxy's port instead of its own. All bytes are forwarded unchanged, in both directions. For requests that only
controllers send, the proxy records the broker epoch and the error code of the response, in the order of the requests. No log contains
this: which request was sent to which incarnation of the broker, and with which result.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from kafka_wire import ApiKey
from kafka_wire.codec import RequestHeader, decode_request, decode_response, peek_header
from lab.frames import SIZE, receive_frame, send_frame
from lab.processes.ports import free_port, release_port
from lab.processes.waiting import CONNECT_TIMEOUT_S, wait_until

FROM_CONTROLLERS = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA})
STEWARD_CLIENT_ID = "steward-controller"
"""Prefix of the client ids of a Steward controller, of its request channels and its other requests."""
HELD_TIMEOUT_S = 60.0
"""More than a broker takes to start on a busy machine."""


@dataclass(slots=True)
class ControllerRequest:
    """One request of a controller; `error_code` is None until the response."""

    key: ApiKey
    broker_epoch: int
    error_code: int | None = None


class BrokerProxy:
    """Listens on `port` from its creation, and forwards to `target_port`."""

    def __init__(self) -> None:
        self.port = free_port()
        self.target_port = 0
        self.requests: list[ControllerRequest] = []
        """Requests that were forwarded, oldest first."""
        self._open = threading.Event()
        self._open.set()
        self._held = 0
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, name=f"proxy {self.port}", daemon=True).start()

    def hold(self) -> None:
        """Hold back the requests of Steward controllers from now on."""
        self._held = 0
        self._open.clear()

    def wait_until_held(self) -> float:
        """Return the seconds until a request of a Steward controller is held back."""
        return wait_until(
            lambda: self._held > 0,
            timeout_s=HELD_TIMEOUT_S,
            what=f"a request of the controller at the proxy on port {self.port}",
        )

    def open(self) -> None:
        """Forward the held requests whose connections are still open, and all later ones."""
        self._open.set()

    def close(self) -> None:
        """Stop accepting connections and release the port."""
        self.open()
        with contextlib.suppress(OSError):  # closed before
            self._listener.shutdown(
                socket.SHUT_RDWR
            )  # close() without shutdown() leaves it listening until accept() returns
        self._listener.close()
        release_port(self.port)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            broker = socket.create_connection(("127.0.0.1", self.target_port), timeout=CONNECT_TIMEOUT_S)
        except OSError:
            client.close()
            return
        broker.settimeout(None)
        pending: dict[int, tuple[RequestHeader, ControllerRequest]] = {}
        threading.Thread(target=self._out, args=(broker, client, pending), daemon=True).start()
        self._in(client, broker, pending)

    def _in(
        self, client: socket.socket, broker: socket.socket, pending: dict[int, tuple[RequestHeader, ControllerRequest]]
    ) -> None:
        with _both(client, broker):
            while (frame := receive_frame(client)) is not None:
                header = peek_header(frame)
                if (header.client_id or "").startswith(STEWARD_CLIENT_ID) and not self._open.is_set():
                    self._held += 1
                    self._open.wait()
                if header.api_key in FROM_CONTROLLERS:
                    _, body = decode_request(frame)
                    request = ControllerRequest(ApiKey(header.api_key), body["broker_epoch"])
                    pending[header.correlation_id] = (header, request)
                    self.requests.append(request)
                send_frame(broker, frame)

    def _out(
        self, broker: socket.socket, client: socket.socket, pending: dict[int, tuple[RequestHeader, ControllerRequest]]
    ) -> None:
        with _both(broker, client):
            while (frame := receive_frame(broker)) is not None:
                (correlation_id,) = SIZE.unpack_from(frame)
                if (waiting := pending.pop(correlation_id, None)) is not None:
                    header, request = waiting
                    _, response = decode_response(request.key, header.api_version, frame)
                    request.error_code = response["error_code"]
                send_frame(client, frame)


@contextlib.contextmanager
def _both(one: socket.socket, other: socket.socket) -> Iterator[None]:
    """Close both connections when one direction has ended."""
    try:
        with contextlib.suppress(OSError):
            yield
    finally:
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
