"""How to reach ZooKeeper: Kafka's `zookeeper.connect` and the timings of one session, checked before anything is opened.

Left out: SASL with ZooKeeper, which kazoo speaks by another package.
"""

import ssl
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import urlsplit

DEFAULT_PORT = 2181

DEFAULT_SESSION_TIMEOUT_MS = 18_000
"""Kafka's own default (zookeeper.session.timeout.ms): how long ZooKeeper waits before it takes us for dead."""

MIN_SESSION_TIMEOUT_MS = 1_000
"""Below one second a session dies of one slow garbage collection, ours or the server's; the server has a minimum of its own."""

DEFAULT_CONNECT_TIMEOUT_MS = 30_000
"""How long the first connection may take: an ensemble that is just starting needs this."""

DEFAULT_MAX_PACKET_BYTES = 0xFFFFF
"""What a server takes in one request, unless its jute.maxbuffer says otherwise; a larger one costs the connection."""

MAX_HOSTS = 64
"""An ensemble has 3 to 7 servers; a longer list is something else pasted into the wrong field."""


class Address(NamedTuple):
    """One server."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """One session's settings; ValueError where they cannot be right."""

    connect: str
    """`host:port,host:port/chroot/path`: the port is 2181 where it is left out, and the chroot is part of no host."""
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS
    max_packet_bytes: int = DEFAULT_MAX_PACKET_BYTES
    tls: ssl.SSLContext | None = None
    """TLS when given; with a certificate in it, that is who we are (scheme x509)."""
    digest: str | None = field(default=None, repr=False)
    """`USER:PASSWORD` of the scheme digest. ZooKeeper takes any: it only matters to the ACLs of znodes."""
    set_acl: bool = False
    """Kafka's zookeeper.set.acl: what we create is ours, and open to all for reading at most (see acl)."""

    def __post_init__(self) -> None:
        parse_connect(self.connect)
        if self.session_timeout_ms < MIN_SESSION_TIMEOUT_MS:
            raise ValueError(
                f"session_timeout_ms is {self.session_timeout_ms}, at least {MIN_SESSION_TIMEOUT_MS} is needed"
            )
        if self.connect_timeout_ms <= 0:
            raise ValueError(f"connect_timeout_ms is {self.connect_timeout_ms}, a positive number is needed")
        if self.digest is not None and not all(self.digest.partition(":")):
            raise ValueError("the digest for ZooKeeper is not USER:PASSWORD")
        if self.set_acl and self.digest is None and self.tls is None:
            raise ValueError(
                "znodes can only be ours alone if we say who we are: by a digest, or by TLS with a certificate"
            )

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The servers, in the order given."""
        return parse_connect(self.connect)[0]

    @property
    def chroot(self) -> str:
        """The path that every other path stands below; empty for none."""
        return parse_connect(self.connect)[1]

    def without_chroot(self) -> "ZooKeeperSettings":
        """Return the same settings for the root of the tree."""
        return replace(self, connect=self.connect.partition("/")[0])


def parse_connect(connect: str) -> tuple[tuple[Address, ...], str]:
    """Return the servers and the chroot of a connect string, the chroot without a slash at its end.

    >>> parse_connect("zk1:2181,[::1]/kafka/a")
    ((Address(host='zk1', port=2181), Address(host='::1', port=2181)), '/kafka/a')
    """
    hosts, slash, tail = connect.partition("/")
    chroot = f"/{tail}".rstrip("/") if slash else ""
    if any(part in {"", ".", ".."} for part in chroot.split("/")[1:]):
        raise ValueError(f"the chroot {chroot!r} of the connect string {connect!r} has an empty or a relative part")
    parts = [part.strip() for part in hosts.split(",")]
    if len(parts) > MAX_HOSTS:
        raise ValueError(f"the connect string names {len(parts)} servers, at most {MAX_HOSTS} are taken")
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
