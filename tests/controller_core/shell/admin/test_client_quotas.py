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
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_zookeeper.formats.configs import decode_config, encode_config
from kafka_zookeeper.writes import Refused, RefusedReason, Unknown
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault

CONTEXT = RequestContext("CLIENT", None, "127.0.0.1", 1, 1)
DEFAULT = None
Entity = dict[str, str | None]


def server(configs: dict[str, dict[str, str]] | None = None) -> AclZooKeeper:
    """A ZooKeeper with what brokers make when they start, and configurations."""
    made = AclZooKeeper()
    for parent in ("users", "clients", "ips", "changes"):
        made.put(f"/config/{parent}")
    for entity, config in (configs or {}).items():
        made.put(f"/config/{entity}", encode_config(config))
    return made


def kept(zookeeper: AclZooKeeper) -> dict[str, dict[str, str] | None]:
    """What stands below /config, by its path there; None: a znode without data."""
    return {
        path.removeprefix("/config/"): None if znode.data is None else decode_config(path, znode.data)
        for path, znode in zookeeper.znodes.items()
        if path.count("/") > 2 and not path.startswith("/config/changes")
    }


def notices(zookeeper: AclZooKeeper) -> list[bytes | None]:
    """What brokers were told."""
    return [znode.data for path, znode in sorted(zookeeper.znodes.items()) if path.startswith("/config/changes/")]


async def call(zookeeper: AclZooKeeper | None, key: ApiKey, body: Body) -> Body:
    """Ask by way of the wire."""
    session = None if zookeeper is None else zookeeper.session()

    async def resolves(name: str) -> bool:
        return name != "nowhere"

    configs = EntityConfigs(lambda: session)  # type: ignore[arg-type,return-value]
    request = codec.decode_request(codec.encode_request(key, 1, 1, None, body))[1]
    answer = await quota_handlers(configs, resolves)[key](CONTEXT, request)
    return codec.decode_response(key, 1, codec.encode_response(key, 1, 1, answer))[1]


def entry(entity: Entity, **ops: float | None) -> Body:
    """Alter an entity; None removes."""
    return {
        "entity": [{"entity_type": key, "entity_name": name} for key, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()],
    }


async def alter(
    zookeeper: AclZooKeeper | None, *entries: Body, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    """Alter entities; gives what became of each."""
    answer = await call(zookeeper, ApiKey.ALTER_CLIENT_QUOTAS, {"entries": entries, "validate_only": validate_only})
    return [(ErrorCode(each["error_code"]), each["error_message"]) for each in answer["entries"]]


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
async def test_quotas_stand_where_brokers_look_for_them(entity: Entity, expected: str) -> None:
    """AdminZkClient.changeEntityConfig, Sanitizer: and one notice for each change, in the same transaction."""
    zookeeper = server()

    assert await alter(zookeeper, entry(entity, consumer_byte_rate=1024.0, request_percentage=12.5)) == [DONE]
    assert kept(zookeeper)[expected] == {"consumer_byte_rate": "1024", "request_percentage": "12.5"}
    assert notices(zookeeper) == [f'{{"version":2,"entity_path":"{expected}"}}'.encode()]
    assert zookeeper.lines.count("multi") == 1


async def test_addresses_have_a_quota_of_their_own() -> None:
    """KIP-612."""
    zookeeper = server()

    asked = [
        entry({"ip": "10.0.0.1"}, connection_creation_rate=7.0),
        entry({"ip": DEFAULT}, connection_creation_rate=9.0),
    ]
    assert await alter(zookeeper, *asked) == [DONE, DONE]
    expected = {"ips/10.0.0.1": {"connection_creation_rate": "7"}, "ips/<default>": {"connection_creation_rate": "9"}}
    assert kept(zookeeper) == expected


async def test_what_else_a_user_has_stays() -> None:
    """A credential, and quotas that are not named."""
    zookeeper = server({"users/alice": {"SCRAM-SHA-256": "kept", "producer_byte_rate": "1", "consumer_byte_rate": "2"}})

    assert await alter(zookeeper, entry({"user": "alice"}, producer_byte_rate=None, consumer_byte_rate=3.0)) == [DONE]
    assert kept(zookeeper) == {"users/alice": {"SCRAM-SHA-256": "kept", "consumer_byte_rate": "3"}}


async def test_what_is_left_empty_is_deleted_with_parents_that_were_there_for_it() -> None:
    """AdminZkClient.tryCleanQuotaNodes."""
    one = {"producer_byte_rate": "1"}
    zookeeper = server({"users/a/clients/c": one, "users/b": one, "users/b/clients/c": one, "users/d/clients/e": one})
    zookeeper.put("/config/users/d/clients/f", encode_config(one))

    asked = [entry({"user": user, "client-id": client}, producer_byte_rate=None) for user, client in ("ac", "bc", "de")]
    assert await alter(zookeeper, *asked) == [DONE] * 3
    assert kept(zookeeper) == {"users/b": one, "users/d": None, "users/d/clients": None, "users/d/clients/f": one}

    assert await alter(zookeeper, entry({"user": "d"}, producer_byte_rate=None)) == [DONE]
    assert kept(zookeeper)["users/d"] == {}, "it has children"
    assert len(notices(zookeeper)) == 4


async def test_a_removal_of_what_is_not_there_is_no_error() -> None:
    """As in Kafka, where brokers are told all the same."""
    zookeeper = server()

    assert await alter(zookeeper, entry({"user": "nobody", "client-id": "c"}, producer_byte_rate=None)) == [DONE]
    assert kept(zookeeper) == {}
    assert len(notices(zookeeper)) == 1


async def test_a_request_to_validate_writes_nothing() -> None:
    """But it tells what would be refused."""
    zookeeper = server()

    asked = [entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "b"}, nonsense=1.0)]
    done, refused = await alter(zookeeper, *asked, validate_only=True)
    assert (done, refused[0]) == (DONE, ErrorCode.INVALID_REQUEST)
    assert (kept(zookeeper), notices(zookeeper)) == ({}, [])


async def test_one_entity_refused_refuses_no_other() -> None:
    """And an entity that stands twice is altered twice, and answered once, as in Kafka."""
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
            "'..' cannot name a znode under /config/users: one non-empty path component is needed",
        ),
    ]
    assert answer == expected
    assert kept(zookeeper) == {"users/a": {"producer_byte_rate": "1", "consumer_byte_rate": "2"}}


async def test_a_change_is_made_again_on_what_others_wrote_meanwhile() -> None:
    """Kafka lets the last writer win; here nobody's quota is lost."""
    zookeeper = server({"users/a": {"producer_byte_rate": "1"}})
    zookeeper.before_writes = [lambda: zookeeper.put("/config/users/a", encode_config({"producer_byte_rate": "5"}))]

    assert await alter(zookeeper, entry({"user": "a"}, consumer_byte_rate=2.0)) == [DONE]
    assert kept(zookeeper) == {"users/a": {"producer_byte_rate": "5", "consumer_byte_rate": "2"}}


async def test_a_client_id_that_comes_while_its_user_is_deleted_is_kept() -> None:
    """The deletion is refused, and made again without the parents."""
    one = {"producer_byte_rate": "1"}
    zookeeper = server({"users/a/clients/c": one})
    zookeeper.before_writes = [lambda: zookeeper.put("/config/users/a/clients/d", encode_config(one))]

    assert await alter(zookeeper, entry({"user": "a", "client-id": "c"}, producer_byte_rate=None)) == [DONE]
    assert kept(zookeeper) == {"users/a": None, "users/a/clients": None, "users/a/clients/d": one}


async def test_parents_that_no_broker_has_made_yet_are_made() -> None:
    """The controller may be there first."""
    zookeeper = AclZooKeeper()

    assert await alter(zookeeper, entry({"ip": DEFAULT}, connection_creation_rate=1.0)) == [DONE]
    assert kept(zookeeper) == {"ips/<default>": {"connection_creation_rate": "1"}}


@pytest.mark.parametrize("how", ["no session", "unknown", "lost", "always others", "no auth", "garbage"])
async def test_what_zookeeper_does_not_do_is_told(how: str) -> None:
    """Retriable where asking again may help."""
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
    """Match a name."""
    return 0, name


async def describe(zookeeper: AclZooKeeper, components: dict[str, tuple[int, str | None]], *, strict: bool) -> Body:
    """Describe what a filter selects."""
    asked = [{"entity_type": key, "match_type": kind, "match": name} for key, (kind, name) in components.items()]
    return await call(zookeeper, ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": asked, "strict": strict})


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
        ({"user": exactly("nobody")}, False, set()),
    ],
)
async def test_a_filter_selects_entities(components: Any, strict: bool, expected: set[float]) -> None:
    """ZkAdminManager.handleDescribeClientQuotas, handleDescribeIpQuotas."""
    answer = await describe(server(EVERYTHING), components, strict=strict)

    assert answer["error_code"] == ErrorCode.NONE
    assert {value["value"] for each in answer["entries"] for value in each["values"]} == expected


async def test_entities_are_named_as_people_name_them() -> None:
    """Not as they stand in paths; no name means the default."""
    answer = await describe(server(EVERYTHING), {}, strict=False)

    named = {
        tuple((part["entity_type"], part["entity_name"]) for part in each["entity"]): each["values"][0]["key"]
        for each in answer["entries"]
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


async def test_what_is_named_exactly_is_not_looked_for() -> None:
    """A cluster may have very many users."""
    zookeeper = server(EVERYTHING)

    await describe(zookeeper, {"user": exactly("alice")}, strict=True)
    assert zookeeper.lines == ["children nothing", "get /config/users/alice"]


async def test_what_cannot_be_described_is_told() -> None:
    """The entries are null then (DescribeClientQuotasRequest.getErrorResponse)."""
    zookeeper = server({"users/a": {"producer_byte_rate": "much"}})
    told = [
        await describe(zookeeper, {"flavour": ANY}, strict=False),
        await describe(zookeeper, {}, strict=False),
        await call(None, ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}),
    ]
    zookeeper.faults = [Fault.READ_LOST]
    told.append(await describe(zookeeper, {}, strict=False))

    expected = [
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REQUEST_TIMED_OUT,
    ]
    assert [each["error_code"] for each in told] == expected
    assert {each["entries"] for each in told} == {None}


async def test_with_nowhere_to_look_a_broker_is_asked() -> None:
    """The requests are passed on."""
    table = handlers(lambda: None)
    for key, body in (
        (ApiKey.ALTER_CLIENT_QUOTAS, {"entries": [], "validate_only": False}),
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False}),
    ):
        with pytest.raises(RelayInstead):
            await table[key](CONTEXT, body)


async def test_an_address_or_a_name_that_resolves_is_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamicConfig.Ip.isValidIpEntity. What stands in the path is asked for: no IPv6 address can be one, as in Kafka."""
    monkeypatch.setattr(client_quotas, "MAX_LOOKUP_S", 0.5)

    assert [await is_host(each) for each in ("127.0.0.1", "localhost", "%3A%3A1", "a" * 64 + ".example")] == [
        True,
        True,
        False,
        False,
    ]
