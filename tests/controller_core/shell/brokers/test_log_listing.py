"""Requests for the list of a broker's logs (DescribeLogDirs)."""

import pytest

from controller_core.model import Endpoint
from controller_core.shell import log_survey
from controller_core.shell.log_survey import ListingError, list_logs
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.brokers.channel_world import World
from tests.controller_core.shell.brokers.fake_broker import hang


def at(port: int) -> Endpoint:
    """A broker's endpoint."""
    return Endpoint("INTERNAL", "127.0.0.1", port, "PLAINTEXT")


async def two_logs(_key: ApiKey, _body: Body) -> Body | None:
    """A log, and its future replica in another directory."""
    partitions = [
        {"partition_index": 3, "partition_size": 10, "offset_lag": 0, "is_future_key": is_future}
        for is_future in (False, True)
    ]
    return {"results": [{"error_code": 0, "log_dir": "/d", "topics": [{"name": "a", "partitions": partitions}]}]}


@pytest.mark.parametrize("highest", [1, 4])
async def test_the_logs_of_a_broker_are_listed(world: World, highest: int) -> None:
    """In the highest version that both sides support."""
    first, _ = world.brokers
    first.ranges[ApiKey.DESCRIBE_LOG_DIRS] = (0, highest)
    first.react = two_logs

    found = await list_logs(1, at(first.port))

    assert first.taken == [(ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})]
    assert first.versions == {ApiKey.DESCRIBE_LOG_DIRS: highest}
    assert (found.topics, found.partition_index.tolist(), found.is_future.tolist()) == (("a",), [3, 3], [False, True])


async def test_a_denied_list_is_a_listing_error(world: World) -> None:
    """The request needs Describe on the cluster."""
    first, _ = world.brokers
    first.ranges[ApiKey.DESCRIBE_LOG_DIRS] = (0, 4)

    async def deny(_key: ApiKey, _body: Body) -> Body | None:
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "results": []}

    first.react = deny

    with pytest.raises(ListingError, match="broker 1: CLUSTER_AUTHORIZATION_FAILED"):
        await list_logs(1, at(first.port))


async def test_a_broker_that_cannot_be_reached_is_a_listing_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is refused, the request is not supported, or there is no answer in time."""
    first, second = world.brokers
    second.ranges[ApiKey.DESCRIBE_LOG_DIRS] = (0, 4)
    second.react = hang
    monkeypatch.setattr(log_survey, "LISTING_TIMEOUT_MS", 50)

    for port in (1, first.port, second.port):
        with pytest.raises(ListingError, match="broker 1"):
            await list_logs(1, at(port))
