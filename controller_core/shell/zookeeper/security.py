"""Security of the connection to ZooKeeper: TLS, the scheme digest, and ACLs of znodes that the controller creates."""

from dataclasses import dataclass
from pathlib import Path

from kafka_node.security.contexts import client_context
from kafka_node.security.secret_files import read_password
from kafka_node.security.settings import TlsFiles
from kafka_zookeeper.settings import ZooKeeperSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSecurity:
    """Security settings: names and files."""

    tls: TlsFiles | None = None
    """None: the connection has no TLS."""
    digest_file: Path | None = None
    """File with one line USER:PASSWORD: the controller's identity with the scheme digest."""
    set_acl: bool = False
    """Kafka's zookeeper.set.acl. Brokers need the same identity; otherwise they cannot change znodes that the controller creates."""

    def __post_init__(self) -> None:
        shows_certificate = self.tls is not None and self.tls.certificate is not None
        if self.set_acl and self.digest_file is None and not shows_certificate:
            raise ValueError("zookeeper.set.acl needs a digest for ZooKeeper, or a client certificate")


def zookeeper_settings(connect: str, session_timeout_ms: int, security: ZooKeeperSecurity) -> ZooKeeperSettings:
    """Read the files. Raises ValueError, which names the file and no secret."""
    return ZooKeeperSettings(
        connect,
        session_timeout_ms,
        tls=None if security.tls is None else client_context(security.tls),
        digest=None if security.digest_file is None else read_password(security.digest_file),
        set_acl=security.set_acl,
    )
