"""kazoo client of a session: one connection, and responses that go directly to the event loop.

kazoo passes responses and watch events to two further threads, which may reorder them. Watches rely on the order, so both go from
kazoo's connection thread directly to the mailbox, and no other thread is started.
"""

import asyncio
import logging
import ssl
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from kafka_zookeeper.mailbox import Mailbox
from kafka_zookeeper.settings import ZooKeeperSettings

RECONNECT_DELAY_S = 0.02
"""Delay before the first attempt to reconnect: a restarted server is available again at once."""
RECONNECT_MAX_DELAY_S = 0.5
"""Short, because the session may expire in the meantime."""
RECONNECT_JITTER = 0.4
"""Keeps many clients from reconnecting at the same moment."""

log = logging.getLogger(f"{__name__}.kazoo")
# At lower levels kazoo logs requests, some with credentials. The session logs its own states.
log.setLevel(logging.ERROR)


class LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo publishes no types
    """kazoo's threading handler without its two callback threads."""

    def __init__(self, connect_timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._tls = tls
        self.connect_timeout_s = connect_timeout_s
        """Timeout of the connection and, separately, of the first response on it."""

    def start(self) -> None:
        """Start no threads."""
        self._running = True

    def stop(self) -> None:
        """Stop no threads."""
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        """Call a watcher in the connection's thread; all watchers only post to the mailbox."""
        callback.func(*callback.args)

    def create_connection(self, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Connect with a timeout that leaves time within the session for another server if this one drops packets."""
        limit = self.connect_timeout_s if timeout is None else min(timeout, self.connect_timeout_s)
        connection = super().create_connection(*args, timeout=limit, **kwargs)
        if self._tls is None:
            return connection
        # Not by kazoo's TLS support, which also trusts the system's authorities.
        connection.settimeout(limit)
        try:
            return self._tls.wrap_socket(connection, server_hostname=kwargs["hostname"])
        except BaseException:
            connection.close()
            raise

    def select(self, readable: Any, writable: Any, broken: Any, timeout: float | None = None) -> Any:
        """Wait for sockets. A TLS socket with decrypted bytes in its buffer is readable at once.

        kazoo reads these bytes within a response, but does not check for them between two responses of one TLS record.
        """
        held = [socket for socket in readable if isinstance(socket, ssl.SSLSocket) and socket.pending() > 0]
        if not held:
            return super().select(readable, writable, broken, timeout)
        found, *others = super().select(readable, writable, broken, 0)
        return [[*found, *(socket for socket in held if socket not in found)], *others]


class Reply:
    """Result object for kazoo's connection thread, which passes the response to the event loop through the mailbox."""

    __slots__ = ("_mailbox", "future")

    def __init__(self, mailbox: Mailbox, loop: asyncio.AbstractEventLoop) -> None:
        self._mailbox = mailbox
        self.future: asyncio.Future[Any] = loop.create_future()

    def set(self, value: Any = None) -> None:
        """Deliver a response."""
        self._mailbox.post(partial(self._resolve, value))

    def set_exception(self, error: BaseException) -> None:
        """Deliver an error."""
        self._mailbox.post(partial(self._fail, error))

    def _resolve(self, value: Any) -> None:
        if not self.future.done():  # the caller may have been cancelled in the meantime
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Client(KazooClient):  # type: ignore[misc]  # kazoo publishes no types
    """kazoo's client with two changes.

    It reports the loss of a connection before it fails the pending requests. kazoo fails these first, and all new ones until then:
    reads, which are retried after a failure, would be sent again and again before the session knows that there is no connection.

    It gives up an unresponsive connection before the session expires: with one server, kazoo waits for the whole session timeout.
    ZooKeeper 3.8 leaves a connection open without a response if it is opened at a certain moment of the server's start.
    """

    def __init__(self, handler: LoopHandler, **settings: Any) -> None:
        super().__init__(handler=handler, **settings)
        invoke = self._connection._invoke  # noqa: SLF001 -- kazoo has no setting for it

        def invoke_within(timeout_s: float, *request: Any, **how: Any) -> Any:
            return invoke(min(timeout_s, handler.connect_timeout_s), *request, **how)

        self._connection._invoke = invoke_within  # noqa: SLF001

    def _notify_pending(self, state: Any) -> None:
        if state == KeeperState.CONNECTING:
            self._make_state_change(KazooState.SUSPENDED)
        super()._notify_pending(state)


def make_client(settings: ZooKeeperSettings) -> KazooClient:
    """Return a client that is not started yet. It reconnects until its session expires."""
    addresses = settings.addresses
    hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)
    session_timeout_s = settings.session_timeout_ms / 1000
    handler = LoopHandler(session_timeout_s / (len(addresses) + 1), settings.tls)
    return Client(
        handler,
        hosts=f"{hosts}{settings.chroot}",
        timeout=session_timeout_s,
        auth_data=[] if settings.digest is None else [("digest", settings.digest)],
        connection_retry=KazooRetry(
            max_tries=-1,
            delay=RECONNECT_DELAY_S,
            max_delay=RECONNECT_MAX_DELAY_S,
            max_jitter=RECONNECT_JITTER,
            sleep_func=handler.sleep_func,
        ),
        logger=log,
    )
