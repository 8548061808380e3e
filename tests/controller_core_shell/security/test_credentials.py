"""SCRAM credentials are looked up in ZooKeeper, where Kafka's own tools keep them."""

from types import SimpleNamespace
from typing import Any

import pytest

from controller_core.shell.security.credentials import MAX_USER_CHARS, ListenerCredentials
from kafka_wire.net.failures import CloseConnection
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

    async def get(self, path: str) -> Any:
        """Read a znode."""
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(data=self.data[path]) if path in self.data else None


def over(session: Session | None) -> ListenerCredentials:
    """Look up in it."""
    return ListenerCredentials(None, lambda: session)  # type: ignore[arg-type,return-value]


async def test_a_credential_is_found_under_the_sanitized_name() -> None:
    """ConfigCommand and AlterUserScramCredentials write /config/users/NAME."""
    session = Session({"/config/users/CN%3Da": encode_config({SCRAM_SHA_256.name: encode_credential(KEPT)})})

    assert KEPT == await over(session).scram_credential("SCRAM-SHA-256", "CN=a")
    assert await over(session).scram_credential("SCRAM-SHA-512", "CN=a") is None
    assert await over(session).scram_credential("SCRAM-SHA-256", "b") is None
    assert await over(session).plain_password("CN=a") is None


@pytest.mark.parametrize(
    "data", [None, b"", b"garbage", encode_config({SCRAM_SHA_256.name: "hunter2"}), b'{"config":{"SCRAM-SHA-256":1}}']
)
async def test_garbage_is_no_credential_and_is_not_logged(data: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever wrote it may have written a password."""
    assert await over(Session({"/config/users/a": data})).scram_credential("SCRAM-SHA-256", "a") is None
    assert "hunter2" not in caplog.text


async def test_no_one_is_let_in_or_refused_without_zookeeper() -> None:
    """The client tries again, or elsewhere."""
    lost = Session({}, ConnectionLostError("the connection is lost"))
    for credentials in (over(None), over(lost)):
        with pytest.raises(CloseConnection):
            await credentials.scram_credential("SCRAM-SHA-256", "a")


async def test_a_name_of_no_sane_length_is_not_looked_for() -> None:
    """ZooKeeper is not asked for what no tool can have written."""
    session = Session({})

    assert await over(session).scram_credential("SCRAM-SHA-256", "a" * (MAX_USER_CHARS + 1)) is None
    assert [] == session.asked
