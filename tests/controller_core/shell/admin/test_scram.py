"""AlterUserScramCredentials and DescribeUserScramCredentials as ZkAdminManager processes them (KIP-554)."""

from types import SimpleNamespace
from typing import Any

import pytest

from controller_core.shell.admin.handlers import handlers
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.zookeeper.entity_configs import EntityConfigs
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS
from kafka_node import scram_requests as scram
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.sasl.scram_keys import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    decode_credential,
    encode_credential,
    make_credential,
)
from kafka_zookeeper.errors import ConnectionLostError
from kafka_zookeeper.formats.configs import decode_config, encode_config
from kafka_zookeeper.writes import Committed, Create, Delete, Refused, RefusedReason, SetData, Unknown

CONTEXT = RequestContext("CLIENT", None, "127.0.0.1", 1, 0)
KEY = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
KEPT = encode_credential(make_credential(SCRAM_SHA_256, b"salted", b"salt", 4096))


class Session:
    """A fake ZooKeeper session with one level of znodes and prepared results."""

    def __init__(self, configs: dict[str, dict[str, str]] | None = None) -> None:
        self.data: dict[str, tuple[bytes | None, int]] = {
            f"/config/users/{name}": (encode_config(config), 0) for name, config in (configs or {}).items()
        }
        self.answers: list[Any] = []
        self.notifications: list[bytes | None] = []
        self.made: list[str] = []
        self.lost = False

    async def get(self, path: str) -> Any:
        """Read a znode."""
        if self.lost:
            raise ConnectionLostError("the connection is lost")
        found = self.data.get(path)
        return None if found is None else SimpleNamespace(data=found[0], version=found[1])

    async def multi(self, operations: list[Any]) -> Any:
        """Write a configuration and its notification."""
        if self.answers:
            return self.answers.pop(0)
        write, notification = operations
        self.notifications.append(notification.data)
        if isinstance(write, Delete):
            assert write.version == self.data.pop(write.path)[1]
            return Committed(())
        data, version = self.data.get(write.path, (None, -1))
        assert (Create if data is None else SetData) is type(write)
        assert isinstance(write, Create) or write.version == version
        self.data[write.path] = (write.data, version + 1)
        assert (notification.path, notification.sequential) == ("/config/changes/config_change_", True)
        return Committed(())

    async def children(self, _: str) -> list[str]:
        """List the users; none has quotas of client ids."""
        return []

    async def multi_get(self, paths: list[str]) -> list[Any]:
        """Read several znodes."""
        return [await self.get(path) for path in paths]

    async def multi_children(self, paths: list[str]) -> list[list[str]]:
        """List the users."""
        assert paths == ["/config/users"]
        if self.lost:
            raise ConnectionLostError("the connection is lost")
        return [[path.rpartition("/")[2] for path in self.data]]

    async def ensure_path(self, path: str) -> None:
        """Create the znodes that brokers create."""
        self.made.append(path)

    def config(self, name: str) -> dict[str, str]:
        """Return the configuration of a user."""
        path = f"/config/users/{name}"
        return decode_config(path, self.data[path][0])


def upsert(name: str = "alice", mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt") -> dict[str, Any]:
    """Return an upsertion."""
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": salt,
        "salted_password": b"salted",
    }


def delete(name: str = "alice", mechanism: int = 1) -> dict[str, Any]:
    """Return a deletion."""
    return {"name": name, "mechanism": mechanism}


async def call(session: Session | None, *upserts: dict[str, Any], deletions: Any = (), active: object = "us") -> Any:
    """Call the handler through the encoding; returns error codes by user."""
    configs = EntityConfigs(lambda: session)
    table = handlers(lambda: active, configs=configs)
    request = codec.encode_request(KEY, 0, 1, None, {"upsertions": list(upserts), "deletions": list(deletions)})
    body = await table[KEY](CONTEXT, codec.decode_request(request)[1])
    _, answer = codec.decode_response(KEY, 0, codec.encode_response(KEY, 0, 1, body))
    return {result["user"]: (ErrorCode(result["error_code"]), result["error_message"]) for result in answer["results"]}


async def test_other_configurations_of_the_user_are_kept() -> None:
    """Quotas and the credential of the other mechanism; brokers are notified."""
    session = Session({"CN%3Da": {"consumer_byte_rate": "7", "SCRAM-SHA-512": "other"}})

    assert await call(session, upsert("CN=a")) == {"CN=a": (ErrorCode.NONE, None)}
    config = session.config("CN%3Da")
    assert config == {"consumer_byte_rate": "7", "SCRAM-SHA-512": "other", "SCRAM-SHA-256": KEPT}
    assert session.notifications == [b'{"version":2,"entity_path":"users/CN%3Da"}']


async def test_new_user_is_created() -> None:
    """Both mechanisms in one request are one write."""
    session = Session()

    assert await call(session, upsert("bob"), upsert("bob", 2, 8192)) == {"bob": (ErrorCode.NONE, None)}
    config = session.config("bob")
    assert set(config) == {SCRAM_SHA_256.name, SCRAM_SHA_512.name}
    assert decode_credential(config[SCRAM_SHA_512.name]).iterations == 8192
    assert len(session.notifications) == 1


async def test_credential_is_removed() -> None:
    """Other configurations stay."""
    session = Session({"alice": {"SCRAM-SHA-256": KEPT, "SCRAM-SHA-512": "other"}})

    assert await call(session, deletions=[delete()]) == {"alice": (ErrorCode.NONE, None)}
    assert session.config("alice") == {"SCRAM-SHA-512": "other"}


@pytest.mark.parametrize(
    ("upserts", "deletions", "expected"),
    [
        ([upsert("")], [], scram.EMPTY_NAME),
        ([], [delete("")], scram.EMPTY_NAME),
        ([upsert(mechanism=0)], [], scram.UNKNOWN_MECHANISM),
        ([], [delete(mechanism=3)], scram.UNKNOWN_MECHANISM),
        ([upsert(iterations=4095)], [], scram.TOO_FEW_ITERATIONS),
        ([upsert(iterations=16385)], [], scram.TOO_MANY_ITERATIONS),
        ([upsert(salt=b"s" * 1025)], [], scram.SALT_TOO_LONG),
        ([upsert(), upsert()], [], scram.DUPLICATE_ALTERATION),
        ([upsert()], [delete()], scram.DUPLICATE_ALTERATION),
        ([], [delete(mechanism=2)], scram.MISSING_CREDENTIAL),
        ([], [delete("unknown")], scram.MISSING_CREDENTIAL),
        ([upsert()], [delete(mechanism=2)], scram.MISSING_CREDENTIAL),
    ],
)
async def test_invalid_alteration_does_not_affect_other_users(upserts: Any, deletions: Any, expected: Any) -> None:
    """None of the user's alterations is applied."""
    session = Session({"alice": {"SCRAM-SHA-256": KEPT}})
    answers = await call(session, *upserts, upsert("other"), deletions=deletions)
    (user,) = {change["name"] for change in [*upserts, *deletions]}

    assert answers == {user: (expected.code, expected.message), "other": (ErrorCode.NONE, None)}
    assert session.config("alice") == {"SCRAM-SHA-256": KEPT}
    assert len(session.notifications) == 1


async def test_only_the_controller_alters_credentials() -> None:
    """Every user is answered once, in order."""
    answers = await call(Session(), upsert("b"), deletions=[delete("a"), delete("b", 2)], active=None)

    assert list(answers) == ["a", "b"]
    assert {code for code, _ in answers.values()} == {ErrorCode.NOT_CONTROLLER}


@pytest.mark.slow
async def test_concurrent_change_is_kept() -> None:
    """The alteration is repeated on the new state, a limited number of times."""
    session = Session()
    session.answers = [Refused(0, RefusedReason.NODE_EXISTS), Refused(0, RefusedReason.BAD_VERSION)]
    assert await call(session, upsert()) == {"alice": (ErrorCode.NONE, None)}

    session.answers = [Refused(0, RefusedReason.BAD_VERSION)] * MAX_ATTEMPTS
    answers = await call(session, upsert())
    assert answers["alice"][0] == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no session", "lost", "unknown", "no parent", "garbage"])
async def test_failed_write_is_reported(how: str) -> None:
    """The error is retriable if a retry may succeed."""
    session: Session | None = Session()
    assert session is not None
    expected = ErrorCode.REQUEST_TIMED_OUT
    match how:
        case "no session":
            session = None
        case "lost":
            session.lost = True
        case "unknown":
            session.answers = [Unknown("the connection is lost")]
        case "no parent":
            session.answers = [Refused(0, RefusedReason.NO_NODE)] * MAX_ATTEMPTS
        case _:
            session.data["/config/users/alice"] = (b'{"config":{"a":1}}', 3)
            expected = ErrorCode.UNKNOWN_SERVER_ERROR

    assert {user: code for user, (code, _) in (await call(session, upsert())).items()} == {"alice": expected}


async def describe(session: Session, *users: str) -> Any:
    """Describe users' credentials through the encoding."""
    configs = EntityConfigs(lambda: session)
    key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    request = codec.encode_request(key, 0, 1, None, {"users": [{"name": user} for user in users] or None})
    body = await handlers(lambda: None, configs=configs)[key](CONTEXT, codec.decode_request(request)[1])
    return codec.decode_response(key, 0, codec.encode_response(key, 0, 1, body))[1]


async def test_credentials_are_described_by_mechanism_and_iterations() -> None:
    """ZkAdminManager.describeUserScramCredentials: all users with credentials, or the named ones with one result each."""
    session = Session(
        {"alice": {"SCRAM-SHA-256": KEPT}, "bob": {"consumer_byte_rate": "1"}, "CN%3Da": {"SCRAM-SHA-512": KEPT}}
    )

    answer = await describe(session)
    assert answer["error_code"] == ErrorCode.NONE
    assert result_lines(answer) == [("CN=a", 0, [(2, 4096)]), ("alice", 0, [(1, 4096)])]

    answer = await describe(session, "bob", "alice", "", "unknown", "CN=a", "CN=a", "")
    assert result_lines(answer) == [
        ("bob", ErrorCode.RESOURCE_NOT_FOUND, []),
        ("alice", ErrorCode.NONE, [(1, 4096)]),
        ("", ErrorCode.RESOURCE_NOT_FOUND, []),
        ("unknown", ErrorCode.RESOURCE_NOT_FOUND, []),
        ("CN=a", ErrorCode.DUPLICATE_RESOURCE, []),
    ]
    assert [result["error_message"] for result in answer["results"]] == [
        "Attempt to describe a user credential that does not exist: bob",
        None,
        "Username must not be empty",
        "Attempt to describe a user credential that does not exist: unknown",
        "Cannot describe SCRAM credentials for the same user twice in a single request: CN=a",
    ]


async def test_invalid_stored_credential_is_an_error_of_its_user() -> None:
    """Other users are described; a failed read of the store is a top-level error."""
    session = Session({"alice": {"SCRAM-SHA-256": "garbage"}, "bob": {"SCRAM-SHA-256": KEPT}})
    bad: Any = ("alice", ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert result_lines(await describe(session)) == [bad, ("bob", ErrorCode.NONE, [(1, 4096)])]
    assert result_lines(await describe(session, "alice")) == [bad]

    session.lost = True
    for requested in ([], ["alice"]):
        assert (await describe(session, *requested))["error_code"] == ErrorCode.REQUEST_TIMED_OUT


def result_lines(answer: Any) -> Any:
    """Return the results by user."""
    return [
        (
            result["user"],
            result["error_code"],
            [(credential["mechanism"], credential["iterations"]) for credential in result["credential_infos"]],
        )
        for result in answer["results"]
    ]


async def test_empty_configuration_is_deleted() -> None:
    """AdminZkClient.tryCleanQuotaNodes."""
    session = Session({"alice": {"SCRAM-SHA-256": KEPT}})

    assert await call(session, deletions=[delete()]) == {"alice": (ErrorCode.NONE, None)}
    assert session.data == {}
    assert len(session.notifications) == 1


async def test_unstorable_name_is_refused() -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR."""
    assert (await call(Session(), upsert("..")))[".."][0] == ErrorCode.INVALID_REQUEST
    assert (await describe(Session(), ".."))["error_code"] == ErrorCode.INVALID_REQUEST


async def test_without_a_store_requests_are_relayed() -> None:
    """The handlers raise RelayInstead."""
    with pytest.raises(RelayInstead):
        await handlers(lambda: None)[KEY](CONTEXT, {"upsertions": [], "deletions": []})
    with pytest.raises(RelayInstead):
        await handlers(lambda: None)[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS](CONTEXT, {"users": None})
