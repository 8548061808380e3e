"""A proxy in front of a broker that records the requests of controllers and can hold them back: the broker's door.

The broker advertises the door's port instead of its own. Everything passes unchanged, in both directions. Of requests that only
controllers send, the door records the broker epoch and the error code of the response, in the order of the requests. It shows what no log
contains: which request was sent to which incarnation of the broker, and with which result.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from kafka_wire.api import ApiKey
from kafka_wire.codec import RequestHeader, decode_request, decode_response, peek_header
from lab.frames import SIZE, receive_frame, send_frame
from lab.ports import free_port, release_port
from lab.waiting import CONNECT_TIMEOUT_S, wait_until

FROM_CONTROLLERS = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA})
OUR_CLIENT_ID = "steward-controller"
"""Prefixes of the client ids of a Steward controller: of its request channels and of its other requests."""
HELD_TIMEOUT_S = 60.0
"""More than a broker takes to start on a busy machine."""


@dataclass(slots=True)
class Seen:
    """One request of a controller; `error_code` is None until it is answered."""

    key: ApiKey
    broker_epoch: int
    error_code: int | None = None


class Door:
    """Listens on `port` from its creation, and forwards to the port `leads_to`."""

    def __init__(self) -> None:
        self.port = free_port()
        self.leads_to = 0
        self.seen: list[Seen] = []
        """Requests that were forwarded, oldest first."""
        self._open = threading.Event()
        self._open.set()
        self._held = 0
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, name=f"door {self.port}", daemon=True).start()

    def hold(self) -> None:
        """Hold back the requests of Steward controllers from now on."""
        self._held = 0
        self._open.clear()

    def wait_until_held(self) -> float:
        """Return the seconds until a request of a Steward controller is held back."""
        return wait_until(
            lambda: self._held > 0, timeout_s=HELD_TIMEOUT_S, what=f"a request of the controller at door {self.port}"
        )

    def open(self) -> None:
        """Forward the held requests whose connections are still open, and all later ones."""
        self._open.set()

    def close(self) -> None:
        """Accept no further connections and release the port."""
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
            broker = socket.create_connection(("127.0.0.1", self.leads_to), timeout=CONNECT_TIMEOUT_S)
        except OSError:
            client.close()
            return
        broker.settimeout(None)
        asked: dict[int, tuple[RequestHeader, Seen]] = {}
        threading.Thread(target=self._out, args=(broker, client, asked), daemon=True).start()
        self._in(client, broker, asked)

    def _in(self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[RequestHeader, Seen]]) -> None:
        with _both(client, broker):
            while (frame := receive_frame(client)) is not None:
                header = peek_header(frame)
                if (header.client_id or "").startswith(OUR_CLIENT_ID) and not self._open.is_set():
                    self._held += 1
                    self._open.wait()
                if header.api_key in FROM_CONTROLLERS:
                    _, body = decode_request(frame)
                    seen = Seen(ApiKey(header.api_key), body["broker_epoch"])
                    asked[header.correlation_id] = (header, seen)
                    self.seen.append(seen)
                send_frame(broker, frame)

    def _out(self, broker: socket.socket, client: socket.socket, asked: dict[int, tuple[RequestHeader, Seen]]) -> None:
        with _both(broker, client):
            while (frame := receive_frame(broker)) is not None:
                (correlation_id,) = SIZE.unpack_from(frame)
                if (one := asked.pop(correlation_id, None)) is not None:
                    header, seen = one
                    _, answer = decode_response(seen.key, header.api_version, frame)
                    seen.error_code = answer["error_code"]
                send_frame(client, frame)


@contextlib.contextmanager
def _both(one: socket.socket, other: socket.socket) -> Iterator[None]:
    """End both directions when one has ended: neither side is left with half a connection."""
    try:
        with contextlib.suppress(OSError):
            yield
    finally:
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
