"""Sessions with TLS client certificates and digests, and ACLs of new znodes (zookeeper.set.acl)."""

import asyncio
import ssl
from collections.abc import Iterator

import pytest
from kazoo.protocol.serialization import GetACL

from kafka_zookeeper.acl import OPEN_TO_ALL, acl_bytes
from kafka_zookeeper.errors import ConnectFailedError
from kafka_zookeeper.protocol import MultiWrite
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.writes import Committed, Create, operation_bytes
from lab.peers.authority import Authority
from lab.peers.zookeeper import tls_settings, zookeeper_server
from lab.processes.ports import free_port, release_port

DIGEST = "controller:hunter2"
ANYONE = "world:anyone"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/brokers/topics/t", [(31, "auth", ""), (1, "world", "anyone")]),
        ("/controller", [(31, "auth", ""), (1, "world", "anyone")]),
        ("/config/users/alice", [(31, "auth", "")]),
        ("/config/brokers/1", [(31, "auth", "")]),
        ("/config/topics/t", [(31, "auth", ""), (1, "world", "anyone")]),
        ("/delegation_token/tokens/x", [(31, "auth", "")]),
        ("/consumers", [(31, "world", "anyone")]),
    ],
)
def test_znodes_have_kafkas_acls(path: str, expected: list[tuple[int, str, str]]):
    """ZkData.defaultAcls: others cannot even read sensitive znodes."""
    assert read_acls(acl_bytes(path)) == expected


def read_acls(data: bytes) -> list[tuple[int, str, str]]:
    """Decode ACLs in ZooKeeper's jute format."""
    found, offset = [], 4
    for _ in range(int.from_bytes(data[:4], "big")):
        permissions = int.from_bytes(data[offset : offset + 4], "big")
        offset += 4
        words = []
        for _ in range(2):
            length = int.from_bytes(data[offset : offset + 4], "big")
            words.append(data[offset + 4 : offset + 4 + length].decode())
            offset += 4 + length
        found.append((permissions, *words))
    assert offset == len(data)
    return found


def test_without_set_acl_znodes_are_open_to_all():
    """Kafka's default."""
    operation = Create("/config/users/a", b"x")
    secured = MultiWrite([operation], set_acl=True)

    assert OPEN_TO_ALL in MultiWrite([operation]).serialize()
    assert OPEN_TO_ALL not in secured.serialize()
    assert secured.size_bytes <= 17 + operation_bytes(operation)


@pytest.mark.parametrize("digest", ["", "user", "user:", ":password"])
def test_a_digest_needs_a_user_and_a_password(digest: str):
    """The error does not contain it."""
    with pytest.raises(ValueError, match=r"must be USER:PASSWORD$"):
        ZooKeeperSettings("zk", digest=digest)


def test_set_acl_requires_authentication():
    """ZooKeeper would reject every ACL."""
    with pytest.raises(ValueError, match="require authentication"):
        ZooKeeperSettings("zk", set_acl=True)


def test_the_representation_contains_no_digest():
    """Settings appear in logs and tracebacks."""
    assert "hunter2" not in repr(ZooKeeperSettings("zk", digest=DIGEST))


@pytest.fixture(scope="module")
def secured(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a ZooKeeper with a port that requires TLS and client certificates; returns the connect string of that port."""
    port = free_port()
    with zookeeper_server(tmp_path_factory.mktemp("secured"), settings=tls_settings(authority, port)):
        yield f"127.0.0.1:{port}/kafka"
    release_port(port)


async def open_session(settings: ZooKeeperSettings) -> ZooKeeperSession:
    """Connect while the server may still be starting, and create the chroot."""
    root = await ZooKeeperSession.connect(settings.without_chroot())
    await root.ensure_path("/kafka")
    await root.close()
    return await ZooKeeperSession.connect(settings)


@pytest.mark.zookeeper
async def test_znodes_of_a_tls_session_belong_to_its_identity(secured: str, authority: Authority):
    """The identity is the certificate's name and the digest. Several responses in one TLS record are all read."""
    tls = authority.client_context("us", "/O=Example/CN=controller")
    settings = ZooKeeperSettings(secured, 6_000, tls=tls, digest=DIGEST, set_acl=True)
    session = await open_session(settings)
    try:
        made = await session.multi([Create("/open", b"x" * 50_000), Create("/config", None)])
        made = made if not isinstance(made, Committed) else await session.multi([Create("/config/users", b"secret")])
        assert isinstance(made, Committed)
        nodes = await asyncio.gather(*(session.get("/open") for _ in range(300)))
        assert {len(node.data or b"") for node in nodes if node is not None} == {50_000}
        schemes = {path: await owners(session, path) for path in ("/kafka/open", "/kafka/config/users")}
    finally:
        await session.close()

    own = {"x509:CN=controller,O=Example", "digest:controller"}
    assert schemes["/kafka/open"] == own | {ANYONE}
    assert own == schemes["/kafka/config/users"]


async def owners(session: ZooKeeperSession, path: str) -> set[str]:
    """Return the identities in a znode's ACLs, by the session's kazoo client; of a digest only the user."""
    acls, _ = await session._send(GetACL(path))
    return {f"{acl.id.scheme}:{acl.id.id.split(':')[0]}" for acl in acls}


@pytest.mark.zookeeper
async def test_an_unauthenticated_client_gets_no_session(secured: str, authority: Authority):
    """Without TLS, without a certificate, or with a server that the client does not trust."""
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    for tls in (None, trusting, ssl.create_default_context()):
        with pytest.raises(ConnectFailedError):
            await ZooKeeperSession.connect(ZooKeeperSettings(secured, 2_000, connect_timeout_ms=1_500, tls=tls))
