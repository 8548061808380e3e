"""A kazoo client as a session needs it: one connection, one session, and every answer straight into the event loop.

kazoo hands answers and watch events to two more threads, which may deliver them in another order than they came. Order is
what a watch is worth, so both go from kazoo's connection thread into the mailbox at once, and no other thread is started.
Left out: what the answers mean.
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
"""Before the first attempt to connect again: a server that was only restarted is back at once."""
RECONNECT_MAX_DELAY_S = 0.5
"""The session runs out while we wait, so never long; the jitter below keeps many clients from coming at once."""
RECONNECT_JITTER = 0.4

_log = logging.getLogger(f"{__name__}.kazoo")
# kazoo writes requests, with the credentials that some carry, at lower levels; the session itself tells what it goes through.
_log.setLevel(logging.ERROR)


class LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo publishes no types
    """kazoo's handler of threads, without its two threads for callbacks."""

    def __init__(self, connect_timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._tls = tls
        self.connect_timeout_s = connect_timeout_s
        """For the connection and, once more, for the first answer on it."""

    def start(self) -> None:
        """Start nothing."""
        self._running = True

    def stop(self) -> None:
        """Stop nothing."""
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        """Call a watcher in the connection's thread; all of ours do is post a letter."""
        callback.func(*callback.args)

    def create_connection(self, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Connect, and leave time within the session for another server when this one swallows packets."""
        limit = self.connect_timeout_s if timeout is None else min(timeout, self.connect_timeout_s)
        connection = super().create_connection(*args, timeout=limit, **kwargs)
        if self._tls is None:
            return connection
        # Not by kazoo's own TLS, which trusts the system's authorities beside the given ones.
        connection.settimeout(limit)
        try:
            return self._tls.wrap_socket(connection, server_hostname=kwargs["hostname"])
        except BaseException:
            connection.close()
            raise

    def select(self, readable: Any, writable: Any, broken: Any, timeout: float | None = None) -> Any:
        """Wait for sockets; one whose TLS holds bytes that it has deciphered already has nothing more to wait for.

        kazoo asks for these bytes within an answer, but not between two of them that came in one record.
        """
        held = [one for one in readable if isinstance(one, ssl.SSLSocket) and one.pending() > 0]
        if not held:
            return super().select(readable, writable, broken, timeout)
        found, *others = super().select(readable, writable, broken, 0)
        return [[*found, *(one for one in held if one not in found)], *others]


class Reply:
    """What kazoo's connection thread sets an answer on; it reaches the loop through the mailbox."""

    __slots__ = ("_mailbox", "future")

    def __init__(self, mailbox: Mailbox, loop: asyncio.AbstractEventLoop) -> None:
        self._mailbox = mailbox
        self.future: asyncio.Future[Any] = loop.create_future()

    def set(self, value: Any = None) -> None:
        """Deliver an answer."""
        self._mailbox.post(partial(self._resolve, value))

    def set_exception(self, error: BaseException) -> None:
        """Deliver a failure."""
        self._mailbox.post(partial(self._fail, error))

    def _resolve(self, value: Any) -> None:
        if not self.future.done():  # the caller may have been cancelled meanwhile
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Client(KazooClient):  # type: ignore[misc]  # kazoo publishes no types
    """kazoo's client, with two changes for the sake of the session.

    It tells of a connection's end before it fails what was under way on it. kazoo fails that first, and all that is asked meanwhile:
    who asks again at a failure, as reads do, would ask again and again before it hears that there is no connection.

    And a connection on which nobody answers is given up while the session still lives: kazoo waits for the whole of it where there
    is one server. ZooKeeper 3.8 leaves one open and unanswered that comes at a certain moment of its start.
    """

    def __init__(self, handler: LoopHandler, **settings: Any) -> None:
        super().__init__(handler=handler, **settings)
        invoke = self._connection._invoke  # noqa: SLF001 - kazoo has no setting for it

        def invoke_within(timeout_s: float, *request: Any, **how: Any) -> Any:
            return invoke(min(timeout_s, handler.connect_timeout_s), *request, **how)

        self._connection._invoke = invoke_within  # noqa: SLF001

    def _notify_pending(self, state: Any) -> None:
        if state == KeeperState.CONNECTING:
            self._make_state_change(KazooState.SUSPENDED)
        super()._notify_pending(state)


def make_client(settings: ZooKeeperSettings) -> KazooClient:
    """Return a client that is not started yet. It connects again for as long as its session lives."""
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
        logger=_log,
    )
