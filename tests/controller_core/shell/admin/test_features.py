"""UpdateFeatures on the wire and in `/feature` (KIP-584, KafkaController.processFeatureUpdates)."""

from typing import Any

import pytest

from controller_core.shell.admin.handlers import handlers
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.zookeeper.features import Features
from controller_core.shell.zookeeper.optimistic import MAX_ATTEMPTS
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_zookeeper import paths
from kafka_zookeeper.formats.brokers import BrokerRegistration, VersionRange, encode_broker
from kafka_zookeeper.formats.controller import encode_controller_epoch
from kafka_zookeeper.formats.feature import FeatureStatus, FinalizedFeatures, decode_features, encode_features
from kafka_zookeeper.writes import Refused, RefusedReason, Unknown
from tests.controller_core.shell.admin.fake_active import CONTROLLER_EPOCH, active_with
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeZooKeeper, Fault

KEY = ApiKey.UPDATE_FEATURES
UP, SAFE = 1, 2


def server(features: FinalizedFeatures | None, *, level: int = 4) -> FakeZooKeeper:
    """Return a ZooKeeper with features, and brokers that support `f` up to a level."""
    made = FakeZooKeeper()
    made.put(paths.CONTROLLER_EPOCH, encode_controller_epoch(CONTROLLER_EPOCH))
    for broker in (1, 2, 3):
        registration = BrokerRegistration(broker, (), features={"f": VersionRange(1, level)})
        made.put(paths.broker(broker), encode_broker(registration))
    if features is not None:
        made.put(paths.FEATURE, encode_features(features))
    return made


async def update(zookeeper: FakeZooKeeper | None, *updates: tuple[str, int, int], validate_only: bool = False) -> Body:
    """Call the handler in version 1."""
    requested = [{"feature": name, "max_version_level": level, "upgrade_type": kind} for name, level, kind in updates]
    return await call(zookeeper, 1, {"feature_updates": requested, "validate_only": validate_only})


async def call(zookeeper: FakeZooKeeper | None, version: int, body: Body) -> Body:
    """Call the handler through Kafka's encoding."""
    session: Any = None if zookeeper is None else zookeeper.session()
    active = active_with()
    table = handlers(lambda: active, features=Features(lambda: session))
    request = codec.decode_request(codec.encode_request(KEY, version, 1, None, body))[1]
    context = RequestContext("CLIENT", None, "127.0.0.1", 1, version)
    answer = await table[KEY](context, request)
    return codec.decode_response(KEY, version, codec.encode_response(KEY, version, 1, answer))[1]


def stored(zookeeper: FakeZooKeeper) -> FinalizedFeatures:
    """Return the contents of the znode."""
    return decode_features(zookeeper.at(paths.FEATURE).data)


async def test_valid_features_are_written_with_an_epoch_check() -> None:
    """Outcomes are per feature. The znode keeps its JSON version."""
    zookeeper = server(FinalizedFeatures(levels={"f": 1, "g": 2}, version=1))

    answer = await update(zookeeper, ("f", 4, UP), ("g", 0, SAFE), ("h", 1, UP))
    assert stored(zookeeper) == FinalizedFeatures(levels={"f": 4}, version=1)
    assert answer["error_code"] == ErrorCode.NONE
    expected = {"f": ErrorCode.NONE, "g": ErrorCode.NONE, "h": ErrorCode.INVALID_REQUEST}
    assert {result["feature"]: result["error_code"] for result in answer["results"]} == expected
    assert "  check /controller_epoch version 0" in zookeeper.lines


async def test_version_0_has_a_downgrade_flag() -> None:
    """UpdateFeaturesRequest.getFeature."""
    zookeeper = server(FinalizedFeatures(levels={"f": 3}))
    lower = {"feature": "f", "max_version_level": 2, "allow_downgrade": False}

    answer = await call(zookeeper, 0, {"feature_updates": [lower]})
    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.INVALID_REQUEST]

    answer = await call(zookeeper, 0, {"feature_updates": [{**lower, "allow_downgrade": True}]})
    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.NONE]
    assert stored(zookeeper).levels == {"f": 2}


async def test_missing_znode_is_created() -> None:
    """As by KafkaController.enableFeatureVersioning, but only with a feature to write."""
    zookeeper = server(None)

    await update(zookeeper, ("h", 1, UP))
    assert paths.FEATURE not in zookeeper.znodes
    await update(zookeeper, ("f", 1, UP))
    assert stored(zookeeper) == FinalizedFeatures(levels={"f": 1})


async def test_validate_only_writes_nothing() -> None:
    """KIP-778."""
    zookeeper = server(FinalizedFeatures(levels={"f": 1}))

    answer = await update(zookeeper, ("f", 4, UP), ("f", 5, UP), ("h", 1, UP), validate_only=True)
    assert stored(zookeeper).levels == {"f": 1}
    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(
    "failure", ["no session", "replaced", "replaced during the update", "disabled", "garbage", "lost"]
)
async def test_failure_of_the_whole_request_is_a_top_level_error(failure: str) -> None:
    """KafkaApis.handleUpdateFeatures."""
    fake = server(FinalizedFeatures(levels={"f": 1}))
    zookeeper: FakeZooKeeper | None = fake
    expected = ErrorCode.NOT_CONTROLLER
    replaced = encode_controller_epoch(CONTROLLER_EPOCH + 1)
    match failure:
        case "no session":
            zookeeper = None
        case "replaced":
            fake.put(paths.CONTROLLER_EPOCH, replaced)
        case "replaced during the update":
            fake.before_writes = [lambda: fake.put(paths.CONTROLLER_EPOCH, replaced)]
        case "disabled":
            zookeeper = server(FinalizedFeatures(FeatureStatus.DISABLED))
            expected = ErrorCode.INVALID_REQUEST
        case "garbage":
            fake.put(paths.FEATURE, b"{")
            expected = ErrorCode.FEATURE_UPDATE_FAILED
        case _:
            fake.faults = [Fault.READ_LOST]
            expected = ErrorCode.FEATURE_UPDATE_FAILED

    answer = await update(zookeeper, ("f", 2, UP))
    assert (answer["error_code"], answer["results"]) == (expected, [])


async def test_update_is_repeated_after_concurrent_write() -> None:
    """A limited number of times; an unknown outcome is reported as a failure."""
    zookeeper = server(FinalizedFeatures(levels={"f": 1}))
    other = encode_features(FinalizedFeatures(levels={"f": 3}))
    zookeeper.before_writes = [lambda: zookeeper.put(paths.FEATURE, other)]
    answer = await update(zookeeper, ("f", 2, UP))
    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.INVALID_REQUEST]

    zookeeper.faults = [Unknown("the connection is lost")]
    answer = await update(zookeeper, ("f", 4, UP))
    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.FEATURE_UPDATE_FAILED]

    zookeeper.faults = [Refused(1, RefusedReason.BAD_VERSION)] * MAX_ATTEMPTS
    assert (await update(zookeeper, ("f", 4, UP)))["error_code"] == ErrorCode.FEATURE_UPDATE_FAILED


async def test_missing_broker_supports_no_feature() -> None:
    """No level is raised without it, so that it can rejoin the cluster."""
    zookeeper = server(FinalizedFeatures(levels={"f": 1}))
    zookeeper.drop(paths.broker(2))

    answer = await update(zookeeper, ("f", 2, UP))
    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.INVALID_REQUEST]


async def test_without_a_store_requests_are_relayed() -> None:
    """The handler raises RelayInstead."""
    active = active_with()
    with pytest.raises(RelayInstead):
        await handlers(lambda: active)[KEY](
            RequestContext("CLIENT", None, "127.0.0.1", 1, 1), {"feature_updates": [], "validate_only": False}
        )
