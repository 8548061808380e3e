"""Security of the connection to ZooKeeper."""

import ssl
from pathlib import Path

import pytest

from controller_core.shell.process import zookeeper_settings
from controller_core.shell.settings import ZooKeeperSecurity
from kafka_node.security.settings import TlsFiles
from kafka_zookeeper.settings import ZooKeeperSettings
from lab.peers.authority import Authority


@pytest.mark.parametrize("tls", [None, TlsFiles(), TlsFiles(ca=Path("ca.pem"))])
def test_acls_of_znodes_require_an_identity(tls: TlsFiles | None) -> None:
    """ACLs of an anonymous session would lock the controller out."""
    with pytest.raises(ValueError, match="needs a digest for ZooKeeper"):
        ZooKeeperSecurity(tls=tls, set_acl=True)


def test_settings_are_read_from_their_files(tmp_path: Path) -> None:
    """TLS with verification, a certificate and a digest; without security settings there is none of these."""
    authority = Authority(tmp_path)
    digest = tmp_path / "digest"
    digest.write_text("controller:hunter2\n")
    digest.chmod(0o600)
    certificate, key = authority.sign("controller", "/CN=controller")
    security = ZooKeeperSecurity(
        tls=TlsFiles(certificate=certificate, key=key, ca=authority.certificate),
        digest_file=digest,
        set_acl=True,
    )
    found = zookeeper_settings("zk:1", 6_000, security)
    assert found.tls is not None

    assert (found.digest, found.set_acl, found.tls.verify_mode) == ("controller:hunter2", True, ssl.CERT_REQUIRED)
    assert zookeeper_settings("zk:1", 6_000, ZooKeeperSecurity()) == ZooKeeperSettings("zk:1", 6_000)
