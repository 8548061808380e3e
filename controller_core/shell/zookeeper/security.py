"""How we reach ZooKeeper: its settings, with what stands in files. Leaves out the sessions (kafka_zookeeper)."""

from controller_core.shell.security.contexts import client_context
from controller_core.shell.security.secret_files import read_password
from controller_core.shell.security.settings import SecuritySettings
from kafka_zookeeper.settings import ZooKeeperSettings


def zookeeper_settings(connect: str, session_timeout_ms: int, security: SecuritySettings) -> ZooKeeperSettings:
    """Read the files. Raises ValueError, which names the file and no secret."""
    digest_file = security.zookeeper_digest_file
    return ZooKeeperSettings(
        connect,
        session_timeout_ms,
        tls=None if security.zookeeper_tls is None else client_context(security.zookeeper_tls),
        digest=None if digest_file is None else read_password(digest_file),
        set_acl=security.zookeeper_set_acl,
    )
