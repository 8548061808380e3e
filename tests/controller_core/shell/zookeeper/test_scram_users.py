"""SCRAM credentials in ZooKeeper, as Kafka's tools write them."""

from types import SimpleNamespace
from typing import Any

import pytest

from controller_core.shell.zookeeper.scram_users import UNKNOWN_SLOTS, ScramUsers
from kafka_wire.net.failures import CloseConnection
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256, encode_credential, make_credential
from kafka_zookeeper.errors import ConnectionLostError
from kafka_zookeeper.formats.configs import encode_config

CREDENTIAL = make_credential(SCRAM_SHA_256, b"salted", b"salt", 4096)


class Session:
    """A session that counts its reads."""

    def __init__(self, data: dict[str, bytes | None], error: Exception | None = None) -> None:
        self.data = data
        self.error = error
        self.reads: list[str] = []

    async def children(self, path: str) -> list[str] | None:
        """List znodes."""
        self.reads.append(path)
        if self.error is not None:
            raise self.error
        return [found.removeprefix(f"{path}/") for found in self.data]

    async def multi_get(self, paths: list[str]) -> list[Any]:
        """Read znodes."""
        return [await self.get(path) for path in paths]

    async def get(self, path: str) -> Any:
        """Read a znode."""
        self.reads.append(path)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(data=self.data[path]) if path in self.data else None


def over(session: Session | None) -> ScramUsers:
    """Credentials in this session."""
    return ScramUsers(lambda: session)


async def test_a_credential_is_found_under_the_sanitized_name() -> None:
    """ConfigCommand and AlterUserScramCredentials write /config/users/NAME."""
    session = Session({"/config/users/CN%3Da": encode_config({SCRAM_SHA_256.name: encode_credential(CREDENTIAL)})})

    assert await over(session).credential("SCRAM-SHA-256", "CN=a") == CREDENTIAL
    assert await over(session).credential("SCRAM-SHA-512", "CN=a") is None
    assert await over(session).credential("SCRAM-SHA-256", "b") is None


@pytest.mark.parametrize(
    "data", [None, b"", b"garbage", encode_config({SCRAM_SHA_256.name: "hunter2"}), b'{"config":{"SCRAM-SHA-256":1}}']
)
async def test_garbage_is_no_credential_and_is_not_logged(data: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    """The data may contain a password."""
    assert await over(Session({"/config/users/a": data})).credential("SCRAM-SHA-256", "a") is None
    assert "hunter2" not in caplog.text


async def test_without_zookeeper_the_connection_is_closed() -> None:
    """The client retries, here or at another broker."""
    lost = Session({}, ConnectionLostError("the connection is lost"))
    for credentials in (over(None), over(lost)):
        with pytest.raises(CloseConnection):
            await credentials.credential("SCRAM-SHA-256", "a")


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Return the time in s."""
        return self.now_s


def user(iterations: int, salt: bytes = b"1lzsu0bfo9v2e5tqyr8ld3axk7") -> bytes:
    """A user's configuration."""
    credential = make_credential(SCRAM_SHA_256, b"salted", salt, iterations)
    return encode_config({SCRAM_SHA_256.name: encode_credential(credential)})


async def test_a_flood_of_attempts_causes_few_reads() -> None:
    """Unauthenticated peers must not exhaust the session that the controller writes with."""
    session, clock = Session({"/config/users/a": user(4096)}), Clock()
    credentials = ScramUsers(lambda: session, clock)

    for number in range(5_000):
        assert await credentials.credential("SCRAM-SHA-256", f"unknown{number}") is None
        assert await credentials.credential("SCRAM-SHA-256", "a") is not None

    assert len(session.reads) <= 2 + UNKNOWN_SLOTS


async def test_an_unknown_user_causes_as_many_reads_as_a_known_one() -> None:
    """The latency of an answer must not reveal whether a user exists."""
    session, clock = Session({"/config/users/a": user(4096)}), Clock()
    credentials = ScramUsers(lambda: session, clock)
    counts = []
    for name in ("a", "unknown", "a", "unknown"):
        clock.now_s += 1
        session.reads.clear()
        await credentials.credential("SCRAM-SHA-256", name)
        counts.append(len(session.reads))
    assert counts == [2, 2, 2, 2]


async def test_created_changed_and_deleted_users_take_effect() -> None:
    """Cached reads expire after a fraction of a second."""
    session, clock = Session({}), Clock()
    credentials = ScramUsers(lambda: session, clock)
    seen = []
    for data in (None, user(4096), user(8192), None):
        session.data = {} if data is None else {"/config/users/a": data}
        clock.now_s += 1
        found = await credentials.credential("SCRAM-SHA-256", "a")
        seen.append(None if found is None else found.iterations)
    assert seen == [None, 4096, 8192, None]


async def test_shapes_of_credentials_are_counted_by_mechanism() -> None:
    """Credentials that cannot be decoded and users of another mechanism are not counted."""
    session = Session(
        {
            "/config/users/a": user(8192),
            "/config/users/b": user(8192),
            "/config/users/c": user(4096, b"\xffsalt"),
            "/config/users/d": encode_config({SCRAM_SHA_256.name: "hunter2"}),
            "/config/users/e": encode_config({"producer_byte_rate": "5"}),
        }
    )
    found = await over(session).shapes("SCRAM-SHA-256")
    usual, other = CredentialShape(8192, 26, salt_is_number=True), CredentialShape(4096, 5, salt_is_number=False)
    assert found == {usual: 2, other: 1}
    assert await over(session).shapes("SCRAM-SHA-512") == {}
