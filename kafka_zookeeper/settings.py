"""ZooKeeper settings: Kafka's `zookeeper.connect`, and the timeouts and credentials of a session.

SASL authentication with ZooKeeper is not supported: kazoo needs another package for it.
"""

import ssl
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import urlsplit

DEFAULT_PORT = 2181

DEFAULT_SESSION_TIMEOUT_MS = 18_000
"""Kafka's default (zookeeper.session.timeout.ms): time without contact after which ZooKeeper ends the session."""

MIN_SESSION_TIMEOUT_MS = 1_000
"""Below one second a session expires during a slow garbage collection of client or server; the server has a minimum too."""

DEFAULT_CONNECT_TIMEOUT_MS = 30_000
"""Timeout of the first connection: an ensemble that is starting needs this time."""

DEFAULT_MAX_PACKET_BYTES = 0xFFFFF
"""A server's default limit of a request (jute.maxbuffer); it closes the connection of a larger one."""

MAX_HOSTS = 64
"""An ensemble has 3 to 7 servers; a longer list is a mistake."""


class Address(NamedTuple):
    """Address of one server."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Settings of one session. Raises ValueError for invalid ones."""

    connect: str
    """`host:port,host:port/chroot/path`: the default port is 2181, and the chroot follows the last host."""
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS
    max_packet_bytes: int = DEFAULT_MAX_PACKET_BYTES
    tls: ssl.SSLContext | None = None
    """Enables TLS; a client certificate in it is the identity of the session (scheme x509)."""
    digest: str | None = field(default=None, repr=False)
    """`USER:PASSWORD` of the scheme digest. ZooKeeper accepts any: it is only compared with the ACLs of znodes."""
    set_acl: bool = False
    """Kafka's zookeeper.set.acl: only the creator may change new znodes, and others may read them at most (see acl)."""

    def __post_init__(self) -> None:
        parse_connect(self.connect)
        if self.session_timeout_ms < MIN_SESSION_TIMEOUT_MS:
            raise ValueError(
                f"session_timeout_ms is {self.session_timeout_ms}, it must be at least {MIN_SESSION_TIMEOUT_MS}"
            )
        if self.connect_timeout_ms <= 0:
            raise ValueError(f"connect_timeout_ms is {self.connect_timeout_ms}, it must be greater than 0")
        if self.digest is not None and not all(self.digest.partition(":")):
            raise ValueError("the digest for ZooKeeper must be USER:PASSWORD")
        if self.set_acl and self.digest is None and self.tls is None:
            raise ValueError(
                "ACLs on new znodes require authentication with ZooKeeper: set a digest, or use TLS with a client certificate"
            )

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Addresses of the servers, in the order of the connect string."""
        return parse_connect(self.connect)[0]

    @property
    def chroot(self) -> str:
        """Prefix of all paths; empty if there is none."""
        return parse_connect(self.connect)[1]

    def without_chroot(self) -> "ZooKeeperSettings":
        """Return the same settings without the chroot."""
        return replace(self, connect=self.connect.partition("/")[0])


def parse_connect(connect: str) -> tuple[tuple[Address, ...], str]:
    """Return the servers and the chroot of a connect string, the chroot without a trailing slash.

    >>> parse_connect("zk1:2181,[::1]/kafka/a")
    ((Address(host='zk1', port=2181), Address(host='::1', port=2181)), '/kafka/a')
    """
    hosts, slash, tail = connect.partition("/")
    chroot = f"/{tail}".rstrip("/") if slash else ""
    if any(part in {"", ".", ".."} for part in chroot.split("/")[1:]):
        raise ValueError(f"the chroot {chroot!r} of the connect string {connect!r} has an empty or a relative part")
    parts = [part.strip() for part in hosts.split(",")]
    if len(parts) > MAX_HOSTS:
        raise ValueError(f"the connect string contains {len(parts)} servers, at most {MAX_HOSTS} are allowed")
    return tuple(_parse_address(part, connect) for part in parts), chroot


def _parse_address(text: str, connect: str) -> Address:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{text!r} in the connect string {connect!r} is not host:port ({error})") from error
    if not host or parts.username is not None or parts.netloc != text or port == 0:
        raise ValueError(f"{text!r} in the connect string {connect!r} is not host:port")
    return Address(host, DEFAULT_PORT if port is None else port)
