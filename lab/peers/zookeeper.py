"""A real ZooKeeper server (from Kafka's jars) on a free port of 127.0.0.1.

One server, not an ensemble: the controller needs sessions, transactions and watches, and one server has all of them. It can be
stopped, killed, frozen and started again on the same port with the same data.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.retry import KazooRetry

from lab.peers.authority import Authority
from lab.peers.java_process import java_command, write_properties
from lab.processes.folder import lab_folder
from lab.processes.node import Node
from lab.processes.ports import free_port
from lab.processes.process import READY_TIMEOUT_S, Process
from lab.processes.waiting import CONNECT_TIMEOUT_S, wait_until

TICK_MS = 500
"""ZooKeeper rounds session time-outs up to whole ticks: a short tick makes failures short too."""

HEAP = "64m"
"""70-80 MB resident; enough for hundreds of thousands of small znodes."""

LONGEST_SESSION_MS = 60_000
"""The server's own default is twenty ticks, which would cut a session of the size that production uses."""

CLIENT_TIMEOUT_S = 30.0


def tls_settings(authority: Authority, port: int) -> dict[str, str]:
    """Return settings of a server with a further port, for TLS; it asks for client certificates, which are the identities of sessions."""
    return {
        "secureClientPort": str(port),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.keyStore.location": str(authority.store("zookeeper", "/CN=zookeeper")),
        "ssl.trustStore.location": str(authority.certificate),
        "ssl.clientAuth": "need",
    }


class ZooKeeperServer(Node):
    """One server: `address` is host:port, `connect(chroot)` the connect string of Kafka and clients."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        heap: str = HEAP,
        tick_ms: int = TICK_MS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare it in `folder`; `settings` are those of zookeeper.properties in addition to port, data and limits."""
        self.port = free_port() if port is None else port
        self.ports = {"client": self.port}
        config = write_properties(
            folder / "zookeeper.properties",
            {
                "clientPort": str(self.port),
                "clientPortAddress": "127.0.0.1",
                "dataDir": str(folder / "zookeeper-data"),
                "tickTime": str(tick_ms),
                "maxSessionTimeout": str(LONGEST_SESSION_MS),
                "maxClientCnxns": "0",
                "admin.enableServer": "false",
                "4lw.commands.whitelist": "srvr,cons,dump,mntr",
                **(settings or {}),
            },
        )
        main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self.process = Process("zookeeper", java_command(main_class, str(config), heap=heap), folder)
        self._client: KazooClient | None = None

    @property
    def address(self) -> str:
        """Return the server's host:port."""
        return f"127.0.0.1:{self.port}"

    def connect(self, chroot: str = "") -> str:
        """Return the connect string with a chroot, `127.0.0.1:2181/kafka`; the chroot is empty or starts with a slash."""
        return f"{self.address}{chroot}"

    def launch(self) -> None:
        """Start it without waiting."""
        self.process.launch()

    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until it serves."""
        return self.process.wait_until_ready(
            lambda: "Mode: standalone" in self.four_letters("srvr"), timeout_s=timeout_s
        )

    def four_letters(self, word: str) -> str:
        """Return the answer to one of ZooKeeper's four-letter commands, empty without an answer."""
        answer = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), timeout=CONNECT_TIMEOUT_S) as connection,
        ):
            connection.sendall(word.encode("ascii"))
            while chunk := connection.recv(65536):
                answer += chunk
        return answer.decode("utf-8", errors="replace")

    @property
    def client(self) -> KazooClient:
        """A client at the root of the tree, for reads and set-up; opened at first use, closed with the server."""
        if self._client is None:
            patient = KazooRetry(max_tries=-1, max_delay=1.0, deadline=CLIENT_TIMEOUT_S)
            self._client = KazooClient(
                hosts=self.address,
                timeout=10.0,
                connection_retry=KazooRetry(max_tries=-1, max_delay=1.0),
                command_retry=patient,
            )
            self._client.start(timeout=CLIENT_TIMEOUT_S)
        return self._client

    def read(self, path: str) -> bytes | None:
        """Return the data of a znode (absolute, chroot included), None when there is no such znode; b"" for no data."""
        try:
            data, _ = self.client.retry(self.client.get, path)
        except NoNodeError:
            return None
        return data or b""

    def wait_until_gone(self, path: str, *, timeout_s: float = LONGEST_SESSION_MS / 1000) -> float:
        """Return the seconds until no znode is at `path`, such as an ephemeral one of a killed process."""
        return wait_until(
            lambda: self.read(path) is None, timeout_s=timeout_s, what=f"{path} to be deleted from ZooKeeper"
        )

    def make_chroot(self, chroot: str) -> str:
        """Create the znode that a chroot names and return the connect string for it."""
        self.client.retry(self.client.ensure_path, chroot)
        return self.connect(chroot)

    def close(self) -> None:
        """Stop the client and the server, and release the port."""
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None
        super().close()


@contextlib.contextmanager
def zookeeper_server(
    folder: Path | None = None,
    *,
    heap: str = HEAP,
    tick_ms: int = TICK_MS,
    settings: Mapping[str, str] | None = None,
) -> Iterator[ZooKeeperServer]:
    """Yield a running server; at the end of the block it is stopped, and its folder is deleted unless it was given."""
    with lab_folder(folder) as place:
        server = ZooKeeperServer(place, heap=heap, tick_ms=tick_ms, settings=settings)
        try:
            server.start()
            yield server
        finally:
            server.close()
