"""SCRAM credentials are looked up in ZooKeeper, where Kafka's own tools keep them."""

from types import SimpleNamespace
from typing import Any

import pytest

from controller_core.shell.zookeeper.scram_users import UNKNOWN_SLOTS, ScramUsers
from kafka_wire.net.failures import CloseConnection
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256, encode_credential, make_credential
from kafka_zookeeper.errors import ConnectionLostError
from kafka_zookeeper.formats.configs import encode_config

KEPT = make_credential(SCRAM_SHA_256, b"salted", b"salt", 4096)


class Session:
    """ZooKeeper's part of it."""

    def __init__(self, data: dict[str, bytes | None], error: Exception | None = None) -> None:
        self.data = data
        self.error = error
        self.asked: list[str] = []

    async def children(self, path: str) -> list[str] | None:
        """List znodes."""
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        return [found.removeprefix(f"{path}/") for found in self.data]

    async def multi_get(self, paths: list[str]) -> list[Any]:
        """Read znodes."""
        return [await self.get(path) for path in paths]

    async def get(self, path: str) -> Any:
        """Read a znode."""
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(data=self.data[path]) if path in self.data else None


def over(session: Session | None) -> ScramUsers:
    """Look up in it."""
    return ScramUsers(lambda: session)  # type: ignore[arg-type,return-value]


async def test_a_credential_is_found_under_the_sanitized_name() -> None:
    """ConfigCommand and AlterUserScramCredentials write /config/users/NAME."""
    session = Session({"/config/users/CN%3Da": encode_config({SCRAM_SHA_256.name: encode_credential(KEPT)})})

    assert await over(session).credential("SCRAM-SHA-256", "CN=a") == KEPT
    assert await over(session).credential("SCRAM-SHA-512", "CN=a") is None
    assert await over(session).credential("SCRAM-SHA-256", "b") is None


@pytest.mark.parametrize(
    "data", [None, b"", b"garbage", encode_config({SCRAM_SHA_256.name: "hunter2"}), b'{"config":{"SCRAM-SHA-256":1}}']
)
async def test_garbage_is_no_credential_and_is_not_logged(data: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever wrote it may have written a password."""
    assert await over(Session({"/config/users/a": data})).credential("SCRAM-SHA-256", "a") is None
    assert "hunter2" not in caplog.text


async def test_no_one_is_let_in_or_refused_without_zookeeper() -> None:
    """The client tries again, or elsewhere."""
    lost = Session({}, ConnectionLostError("the connection is lost"))
    for credentials in (over(None), over(lost)):
        with pytest.raises(CloseConnection):
            await credentials.credential("SCRAM-SHA-256", "a")


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now_s


def user(iterations: int, salt: bytes = b"1lzsu0bfo9v2e5tqyr8ld3axk7") -> bytes:
    """A user's configuration."""
    credential = make_credential(SCRAM_SHA_256, b"salted", salt, iterations)
    return encode_config({SCRAM_SHA_256.name: encode_credential(credential)})


async def test_a_flood_of_attempts_is_a_few_reads() -> None:
    """Peers that are not authenticated must not use up the session that the controller writes with."""
    session, clock = Session({"/config/users/a": user(4096)}), Clock()
    credentials = ScramUsers(lambda: session, clock)  # type: ignore[arg-type,return-value]

    for number in range(5_000):
        assert await credentials.credential("SCRAM-SHA-256", f"unknown{number}") is None
        assert await credentials.credential("SCRAM-SHA-256", "a") is not None

    assert len(session.asked) <= 2 + UNKNOWN_SLOTS


async def test_an_unknown_user_costs_as_many_reads_as_a_known_one() -> None:
    """The time that an answer takes must not tell whether a user exists."""
    session, clock = Session({"/config/users/a": user(4096)}), Clock()
    credentials = ScramUsers(lambda: session, clock)  # type: ignore[arg-type,return-value]
    reads = []
    for name in ("a", "unknown", "a", "unknown"):
        clock.now_s += 1
        session.asked.clear()
        await credentials.credential("SCRAM-SHA-256", name)
        reads.append(len(session.asked))
    assert reads == [2, 2, 2, 2]


async def test_users_that_come_change_and_go_are_seen() -> None:
    """What was read counts for a fraction of a second."""
    session, clock = Session({}), Clock()
    credentials = ScramUsers(lambda: session, clock)  # type: ignore[arg-type,return-value]
    seen = []
    for data in (None, user(4096), user(8192), None):
        session.data = {} if data is None else {"/config/users/a": data}
        clock.now_s += 1
        found = await credentials.credential("SCRAM-SHA-256", "a")
        seen.append(None if found is None else found.iterations)
    assert seen == [None, 4096, 8192, None]


async def test_what_credentials_look_like_is_counted_by_mechanism() -> None:
    """What cannot be decoded does not count; users of another mechanism do not, either."""
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
