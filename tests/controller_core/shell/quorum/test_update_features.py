"""UpdateFeatures on the quorum's listeners: kraft.version 0 to 1 while the quorum runs, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller_core.rules.features import UpgradeType
from controller_core.shell.quorum.apis import features
from controller_core.shell.quorum.update_features import refusal, update_features
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from tests.controller_core.shell.quorum.members import Member, committed, leader_of, members
from tests.waiting import until

CONTEXT = RequestContext("CONTROLLER", None, "127.0.0.1", 1, 2)
FAILED_FOR_ALL = "The update failed for all features since the following feature had an error: "

NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[list[Member]]:
    """Two running members at kraft.version 0."""
    running = members(tmp_path, 2)
    for member in running:
        member.start()
    yield running
    for member in running:
        if member.process is not None:
            await member.crash()


def request(
    feature: str = "kraft.version",
    level: int = 1,
    upgrade_type: int = UpgradeType.UPGRADE,
    *,
    validate_only: bool = False,
) -> Body:
    """Return a request for one feature."""
    update = {"feature": feature, "max_version_level": level, "upgrade_type": upgrade_type}
    return {"timeout_ms": 20_000, "feature_updates": [update], "validate_only": validate_only}


def levels(some: list[Member]) -> list[int]:
    """Return the level of kraft.version that each member knows."""
    return [member.node.history.kraft_version for member in some if member.node is not None]


async def upgraded(leader: Member, body: Body) -> Body:
    """Send a request until all voters have reported themselves to the leader."""
    while True:
        answer = await update_features(leader.driver, CONTEXT, body)
        if answer["error_code"] != ErrorCode.INVALID_UPDATE_VERSION:
            return answer
        assert "Not all voters have reported" in answer["error_message"], answer
        await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_kraft_version_is_raised_while_the_quorum_runs(two: list[Member]) -> None:
    """KIP-853: a dry run changes nothing; the answer comes after the commit; a second request changes nothing more."""
    leader = await leader_of(two)
    dry_run = await upgraded(leader, request(validate_only=True))
    level_after_dry_run = levels(two)
    done = await upgraded(leader, request())
    voters_offset = leader.node.history.voters_offset if leader.node else None
    again = await upgraded(leader, request())
    await until(lambda: levels(two) == [1, 1])

    success = {"error_code": ErrorCode.NONE, "error_message": None, "results": []}
    assert (dry_run, done, again) == (success, success, success)
    assert level_after_dry_run == [0, 0]
    assert voters_offset is not None
    assert committed(leader) > voters_offset
    assert leader.node is not None
    assert leader.node.history.voters_offset == voters_offset


async def test_a_node_that_does_not_lead_is_not_the_controller(two: list[Member]) -> None:
    """Kafka's Admin client asks for the controller again after this error."""
    leader = await leader_of(two)
    follower = next(member for member in two if member is not leader)
    answer = await update_features(follower.driver, CONTEXT, request())

    assert answer["error_code"] == ErrorCode.NOT_CONTROLLER


@pytest.mark.slow
async def test_an_upgrade_that_is_not_committed_in_time_is_reported(two: list[Member]) -> None:
    """The record may be committed later."""
    leader = await leader_of(two)
    await upgraded(leader, request(validate_only=True))
    await next(member for member in two if member is not leader).crash()
    answer = await update_features(leader.driver, CONTEXT, {**request(), "timeout_ms": 100})

    assert answer["error_code"] == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.slow
async def test_a_refused_feature_refuses_the_request(two: list[Member]) -> None:
    """Kafka's words; nothing is upgraded when another feature of the request is refused."""
    leader = await leader_of(two)
    body = request("metadata.version", 30)
    body["feature_updates"] += request()["feature_updates"]
    answer = await update_features(leader.driver, CONTEXT, body)

    reason = "This controller applies no metadata and does not support this feature."
    text = f"{FAILED_FOR_ALL}Invalid update version 30 for feature metadata.version. {reason}"
    assert (answer["error_code"], answer["error_message"]) == (ErrorCode.INVALID_UPDATE_VERSION, text)
    assert levels(two) == [0, 0]


@pytest.mark.parametrize(
    ("current", "level", "upgrade_type", "reason"),
    [
        (0, 1, UpgradeType.UPGRADE, None),
        (1, 1, UpgradeType.UPGRADE, None),
        (1, 1, UpgradeType.SAFE_DOWNGRADE, None),
        (0, 2, UpgradeType.UPGRADE, "This controller only supports versions 0-1."),
        (0, -1, UpgradeType.UPGRADE, "A feature version cannot be less than 0."),
        (1, 0, UpgradeType.UPGRADE, NO_DOWNGRADE),
        (1, 0, UpgradeType.SAFE_DOWNGRADE, "Can't downgrade the version of this feature."),
        (1, 0, UpgradeType.UNSAFE_DOWNGRADE, "Can't downgrade the version of this feature."),
        (0, 1, UpgradeType.SAFE_DOWNGRADE, "Can't downgrade to a newer version."),
        (0, 1, 77, "The controller does not support the given upgrade type."),
    ],
)  # fmt: skip
def test_a_level_is_refused_for_kafkas_reasons(current: int, level: int, upgrade_type: int, reason: str | None) -> None:
    """FeatureControlManager.updateFeature."""
    assert refusal(current, level, upgrade_type) == reason


@pytest.mark.slow
async def test_api_versions_list_the_level_in_effect(two: list[Member]) -> None:
    """SimpleApiVersionManager's features: a level of 0 is not listed as finalized; all nodes list the supported levels."""
    leader = await leader_of(two)
    before = [features(member.driver) for member in two]
    await upgraded(leader, request())
    await until(lambda: levels(two) == [1, 1])

    assert [(answer.supported_features, answer.finalized_features) for answer in before] == [
        ({"kraft.version": (0, 1)}, {})
    ] * 2
    assert [features(member.driver).finalized_features for member in two] == [{"kraft.version": (1, 1)}] * 2
