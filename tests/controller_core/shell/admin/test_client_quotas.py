"""AlterClientQuotas and DescribeClientQuotas on the wire and in ZooKeeper (KIP-546, ZkAdminManager, AdminZkClient)."""

from typing import Any

import pytest

from controller_core.shell.admin import client_quotas
from controller_core.shell.admin.client_quotas import is_host, quota_handlers
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.zookeeper.entity_configs import EntityConfigs
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_zookeeper.formats.configs import decode_config, encode_config
from kafka_zookeeper.writes import Refused, RefusedReason, Unknown
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault

CONTEXT = RequestContext("CLIENT", None, "127.0.0.1", 1, 1)
DEFAULT = None
Entity = dict[str, str | None]


def server(configs: dict[str, dict[str, str]] | None = None) -> AclZooKeeper:
    """Return a ZooKeeper with the znodes that brokers create at start, and configurations."""
    made = AclZooKeeper()
    for parent in ("users", "clients", "ips", "changes"):
        made.put(f"/config/{parent}")
    for entity, config in (configs or {}).items():
        made.put(f"/config/{entity}", encode_config(config))
    return made


def stored(zookeeper: AclZooKeeper) -> dict[str, dict[str, str] | None]:
    """Return the znodes below /config by relative path; None: a znode without data."""
    return {
        path.removeprefix("/config/"): None if znode.data is None else decode_config(path, znode.data)
        for path, znode in zookeeper.znodes.items()
        if path.count("/") > 2 and not path.startswith("/config/changes")
    }


def notifications(zookeeper: AclZooKeeper) -> list[bytes | None]:
    """Return the notifications to brokers."""
    return [znode.data for path, znode in sorted(zookeeper.znodes.items()) if path.startswith("/config/changes/")]


async def call(zookeeper: AclZooKeeper | None, key: ApiKey, body: Body) -> Body:
    """Call a handler through Kafka's encoding."""
    session = None if zookeeper is None else zookeeper.session()

    async def resolves(name: str) -> bool:
        return name != "nowhere"

    configs = EntityConfigs(lambda: session)
    request = codec.decode_request(codec.encode_request(key, 1, 1, None, body))[1]
    answer = await quota_handlers(configs, resolves)[key](CONTEXT, request)
    return codec.decode_response(key, 1, codec.encode_response(key, 1, 1, answer))[1]


def entry(entity: Entity, **ops: float | None) -> Body:
    """Return the alteration of an entity; None removes a quota."""
    return {
        "entity": [{"entity_type": key, "entity_name": name} for key, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()],
    }


async def alter(
    zookeeper: AclZooKeeper | None, *entries: Body, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    """Alter entities and return their outcomes."""
    answer = await call(zookeeper, ApiKey.ALTER_CLIENT_QUOTAS, {"entries": entries, "validate_only": validate_only})
    return [(ErrorCode(entry["error_code"]), entry["error_message"]) for entry in answer["entries"]]


DONE = (ErrorCode.NONE, None)


@pytest.mark.parametrize(
    ("entity", "expected"),
    [
        ({"user": "alice"}, "users/alice"),
        ({"user": DEFAULT}, "users/<default>"),
        ({"client-id": "a b/*"}, "clients/a%20b%2F%2A"),
        ({"client-id": DEFAULT}, "clients/<default>"),
        ({"client-id": "c", "user": "CN=a"}, "users/CN%3Da/clients/c"),
        ({"user": DEFAULT, "client-id": DEFAULT}, "users/<default>/clients/<default>"),
    ],
)
async def test_quotas_are_written_to_the_paths_that_brokers_read(entity: Entity, expected: str) -> None:
    """AdminZkClient.changeEntityConfig, Sanitizer. Each change and its notification are one transaction."""
    zookeeper = server()

    assert await alter(zookeeper, entry(entity, consumer_byte_rate=1024.0, request_percentage=12.5)) == [DONE]
    assert stored(zookeeper)[expected] == {"consumer_byte_rate": "1024", "request_percentage": "12.5"}
    assert notifications(zookeeper) == [f'{{"version":2,"entity_path":"{expected}"}}'.encode()]
    assert zookeeper.lines.count("multi") == 1


async def test_ip_addresses_have_separate_quotas() -> None:
    """KIP-612."""
    zookeeper = server()

    requested = [
        entry({"ip": "10.0.0.1"}, connection_creation_rate=7.0),
        entry({"ip": DEFAULT}, connection_creation_rate=9.0),
    ]
    assert await alter(zookeeper, *requested) == [DONE, DONE]
    expected = {"ips/10.0.0.1": {"connection_creation_rate": "7"}, "ips/<default>": {"connection_creation_rate": "9"}}
    assert stored(zookeeper) == expected


async def test_other_configurations_of_a_user_are_kept() -> None:
    """Credentials, and quotas that the request does not contain."""
    zookeeper = server(
        {"users/alice": {"SCRAM-SHA-256": "stored", "producer_byte_rate": "1", "consumer_byte_rate": "2"}}
    )

    assert await alter(zookeeper, entry({"user": "alice"}, producer_byte_rate=None, consumer_byte_rate=3.0)) == [DONE]
    assert stored(zookeeper) == {"users/alice": {"SCRAM-SHA-256": "stored", "consumer_byte_rate": "3"}}


async def test_empty_configuration_is_deleted_with_its_empty_parents() -> None:
    """AdminZkClient.tryCleanQuotaNodes."""
    one = {"producer_byte_rate": "1"}
    zookeeper = server({"users/a/clients/c": one, "users/b": one, "users/b/clients/c": one, "users/d/clients/e": one})
    zookeeper.put("/config/users/d/clients/f", encode_config(one))

    requested = [
        entry({"user": user, "client-id": client}, producer_byte_rate=None) for user, client in ("ac", "bc", "de")
    ]
    assert await alter(zookeeper, *requested) == [DONE] * 3
    assert stored(zookeeper) == {"users/b": one, "users/d": None, "users/d/clients": None, "users/d/clients/f": one}

    assert await alter(zookeeper, entry({"user": "d"}, producer_byte_rate=None)) == [DONE]
    assert stored(zookeeper)["users/d"] == {}, "it has children"
    assert len(notifications(zookeeper)) == 4


async def test_removing_a_missing_quota_succeeds() -> None:
    """As in Kafka, where brokers are notified as well."""
    zookeeper = server()

    assert await alter(zookeeper, entry({"user": "unknown", "client-id": "c"}, producer_byte_rate=None)) == [DONE]
    assert stored(zookeeper) == {}
    assert len(notifications(zookeeper)) == 1


async def test_validate_only_writes_nothing() -> None:
    """The response contains the errors of an actual change."""
    zookeeper = server()

    requested = [entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "b"}, nonsense=1.0)]
    done, refused = await alter(zookeeper, *requested, validate_only=True)
    assert (done, refused[0]) == (DONE, ErrorCode.INVALID_REQUEST)
    assert (stored(zookeeper), notifications(zookeeper)) == ({}, [])


async def test_invalid_entity_does_not_affect_other_entities() -> None:
    """An entity that is listed twice is altered twice and answered once, as in Kafka."""
    zookeeper = server()
    answer = await alter(
        zookeeper,
        entry({"user": "a"}, producer_byte_rate=1.0),
        entry({"ip": "nowhere"}, connection_creation_rate=1.0),
        entry({"user": ".."}, producer_byte_rate=1.0),
        entry({"user": "a"}, consumer_byte_rate=2.0),
    )

    expected = [
        DONE,
        (ErrorCode.INVALID_REQUEST, "nowhere is not a valid IP or resolvable host."),
        (
            ErrorCode.INVALID_REQUEST,
            "An entity name must not be empty, '.' or '..'.",
        ),
    ]
    assert answer == expected
    assert stored(zookeeper) == {"users/a": {"producer_byte_rate": "1", "consumer_byte_rate": "2"}}


async def test_change_is_repeated_after_concurrent_write() -> None:
    """In Kafka the last writer overwrites the other change; here both are kept."""
    zookeeper = server({"users/a": {"producer_byte_rate": "1"}})
    zookeeper.before_writes = [lambda: zookeeper.put("/config/users/a", encode_config({"producer_byte_rate": "5"}))]

    assert await alter(zookeeper, entry({"user": "a"}, consumer_byte_rate=2.0)) == [DONE]
    assert stored(zookeeper) == {"users/a": {"producer_byte_rate": "5", "consumer_byte_rate": "2"}}


async def test_client_id_added_while_its_user_is_deleted_is_kept() -> None:
    """The deletion fails and is repeated without the parents."""
    one = {"producer_byte_rate": "1"}
    zookeeper = server({"users/a/clients/c": one})
    zookeeper.before_writes = [lambda: zookeeper.put("/config/users/a/clients/d", encode_config(one))]

    assert await alter(zookeeper, entry({"user": "a", "client-id": "c"}, producer_byte_rate=None)) == [DONE]
    assert stored(zookeeper) == {"users/a": None, "users/a/clients": None, "users/a/clients/d": one}


async def test_missing_parents_are_created() -> None:
    """The controller may start before any broker."""
    zookeeper = AclZooKeeper()

    assert await alter(zookeeper, entry({"ip": DEFAULT}, connection_creation_rate=1.0)) == [DONE]
    assert stored(zookeeper) == {"ips/<default>": {"connection_creation_rate": "1"}}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no session", "unknown", "lost", "always others", "no auth", "garbage"])
async def test_failed_write_is_reported(how: str) -> None:
    """The error is retriable if a retry may succeed."""
    zookeeper: AclZooKeeper | None = server({"users/a": {"producer_byte_rate": "1"}})
    assert zookeeper is not None
    expected = ErrorCode.REQUEST_TIMED_OUT
    match how:
        case "no session":
            zookeeper = None
        case "unknown":
            zookeeper.faults = [Unknown("the connection is lost")]
        case "lost":
            zookeeper.faults = [Fault.READ_LOST]
        case "always others":
            zookeeper.faults = [Refused(0, RefusedReason.BAD_VERSION)] * MAX_ATTEMPTS
        case "no auth":
            zookeeper.faults = [Refused(0, RefusedReason.NO_AUTH)]
            expected = ErrorCode.UNKNOWN_SERVER_ERROR
        case _:
            zookeeper.put("/config/users/a", b'{"config":{"a":1}}')
            expected = ErrorCode.UNKNOWN_SERVER_ERROR

    assert [code for code, _ in await alter(zookeeper, entry({"user": "a"}, consumer_byte_rate=2.0))] == [expected]


EVERYTHING = {
    "users/alice": {"producer_byte_rate": "1", "SCRAM-SHA-256": "no quota"},
    "users/CN%3Da": {"request_percentage": "2.5"},
    "users/bob": {"SCRAM-SHA-256": "no quota"},
    "users/<default>": {"producer_byte_rate": "3"},
    "clients/c": {"producer_byte_rate": "4"},
    "clients/<default>": {"producer_byte_rate": "5"},
    "users/alice/clients/c": {"producer_byte_rate": "6"},
    "users/<default>/clients/<default>": {"producer_byte_rate": "7"},
    "ips/10.0.0.1": {"connection_creation_rate": "8"},
    "ips/<default>": {"connection_creation_rate": "9"},
}
ANY = (2, None)
OF_DEFAULT = (1, None)


def exactly(name: str) -> tuple[int, str | None]:
    """Return a component that matches a name exactly."""
    return 0, name


async def describe(zookeeper: AclZooKeeper, components: dict[str, tuple[int, str | None]], *, strict: bool) -> Body:
    """Describe the entities that a filter selects."""
    requested = [{"entity_type": key, "match_type": kind, "match": name} for key, (kind, name) in components.items()]
    return await call(zookeeper, ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": requested, "strict": strict})


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ({}, False, {1, 2.5, 3, 4, 5, 6, 7, 8, 9}),
        ({}, True, set()),
        ({"user": ANY}, False, {1, 2.5, 3, 6, 7}),
        ({"user": ANY}, True, {1, 2.5, 3}),
        ({"user": exactly("alice")}, False, {1, 6}),
        ({"user": exactly("alice")}, True, {1}),
        ({"user": exactly("CN=a")}, True, {2.5}),
        ({"user": OF_DEFAULT}, False, {3, 7}),
        ({"client-id": ANY}, False, {4, 5, 6, 7}),
        ({"client-id": ANY}, True, {4, 5}),
        ({"client-id": exactly("c")}, False, {4, 6}),
        ({"client-id": OF_DEFAULT}, True, {5}),
        ({"user": ANY, "client-id": ANY}, True, {6, 7}),
        ({"user": exactly("alice"), "client-id": exactly("c")}, False, {6}),
        ({"user": OF_DEFAULT, "client-id": ANY}, True, {7}),
        ({"ip": ANY}, True, {8, 9}),
        ({"ip": exactly("10.0.0.1")}, False, {8}),
        ({"ip": OF_DEFAULT}, False, {9}),
        ({"user": exactly("unknown")}, False, set()),
    ],
)
async def test_filter_selects_entities(components: Any, strict: bool, expected: set[float]) -> None:
    """ZkAdminManager.handleDescribeClientQuotas, handleDescribeIpQuotas."""
    answer = await describe(server(EVERYTHING), components, strict=strict)

    assert answer["error_code"] == ErrorCode.NONE
    assert {value["value"] for entry in answer["entries"] for value in entry["values"]} == expected


async def test_entity_names_are_returned_unsanitized() -> None:
    """The names in paths are sanitized; null is the default entity."""
    answer = await describe(server(EVERYTHING), {}, strict=False)

    named = {
        tuple((part["entity_type"], part["entity_name"]) for part in entry["entity"]): entry["values"][0]["key"]
        for entry in answer["entries"]
    }
    expected = {
        (("user", "alice"),): "producer_byte_rate",
        (("user", "CN=a"),): "request_percentage",
        (("user", None),): "producer_byte_rate",
        (("client-id", "c"),): "producer_byte_rate",
        (("client-id", None),): "producer_byte_rate",
        (("user", "alice"), ("client-id", "c")): "producer_byte_rate",
        (("user", None), ("client-id", None)): "producer_byte_rate",
        (("ip", "10.0.0.1"),): "connection_creation_rate",
        (("ip", None),): "connection_creation_rate",
    }
    assert named == expected


async def test_exact_name_is_read_without_listing() -> None:
    """A cluster may have very many users."""
    zookeeper = server(EVERYTHING)

    await describe(zookeeper, {"user": exactly("alice")}, strict=True)
    assert zookeeper.lines == ["children nothing", "get /config/users/alice"]


async def test_failed_describe_has_null_entries() -> None:
    """DescribeClientQuotasRequest.getErrorResponse."""
    zookeeper = server({"users/a": {"producer_byte_rate": "much"}})
    answered = [
        await describe(zookeeper, {"flavour": ANY}, strict=False),
        await describe(zookeeper, {}, strict=False),
        await call(None, ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}),
    ]
    zookeeper.faults = [Fault.READ_LOST]
    answered.append(await describe(zookeeper, {}, strict=False))

    expected = [
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REQUEST_TIMED_OUT,
    ]
    assert [answer["error_code"] for answer in answered] == expected
    assert {answer["entries"] for answer in answered} == {None}


async def test_without_a_store_requests_are_relayed() -> None:
    """Both APIs raise RelayInstead."""
    table = handlers(lambda: None)
    for key, body in (
        (ApiKey.ALTER_CLIENT_QUOTAS, {"entries": [], "validate_only": False}),
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}),
    ):
        with pytest.raises(RelayInstead):
            await table[key](CONTEXT, body)


async def test_ip_entity_must_be_an_address_or_resolvable_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamicConfig.Ip.isValidIpEntity. The sanitized name is resolved, so no IPv6 address is valid, as in Kafka."""
    monkeypatch.setattr(client_quotas, "MAX_LOOKUP_S", 0.5)

    assert [await is_host(host) for host in ("127.0.0.1", "localhost", "%3A%3A1", "a" * 64 + ".example")] == [
        True,
        True,
        False,
        False,
    ]
