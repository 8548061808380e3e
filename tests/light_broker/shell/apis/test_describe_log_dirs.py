"""DescribeLogDirs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_node.context import RequestContext
from kafka_wire import ApiKey, ErrorCode
from tests.kafka_log.batches import fast_folder
from tests.light_broker.fixed_control import partition_view, topic_view
from tests.light_broker.hosting import ORDERS, hosting
from tests.light_broker.shell.apis.calls import call

TOPICS = (topic_view("orders", partition_view(), partition_view()), topic_view("users", number=2))


class Refusing:
    """An authorizer that allows nothing."""

    def asking(self, _: RequestContext) -> Callable[..., bool]:
        """Return a judge."""
        return lambda *_, **__: False


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


async def described(
    broker: object, topics: list[dict[str, object]] | None, version: int = 5
) -> list[dict[str, object]]:
    """Return the results of a request."""
    answer = await call(broker, ApiKey.DESCRIBE_LOG_DIRS, {"topics": topics}, version=version)
    assert answer is not None
    return list(answer["results"])


async def test_all_logs_are_described_with_the_space_of_their_file_system(folder: Path) -> None:
    """A log's size is that of its segments without indexes; the lag is that of a follower behind its high watermark."""
    async with hosting(folder, *TOPICS) as broker:
        opened = broker.logs.log(ORDERS)
        assert opened is not None
        (result,) = await described(broker, None)

        partitions = {
            (topic["name"], partition["partition_index"]): (
                partition["partition_size"],
                partition["offset_lag"],
                partition["is_future_key"],
            )
            for topic in result["topics"]  # type: ignore[attr-defined]
            for partition in topic["partitions"]
        }
        assert partitions == dict.fromkeys([("orders", 0), ("orders", 1), ("users", 0)], (0, 0, False))
        assert (result["error_code"], result["log_dir"]) == (ErrorCode.NONE, str(folder))
        space = os.statvfs(folder)
        assert result["total_bytes"] == space.f_blocks * space.f_frsize
        assert 0 < result["usable_bytes"] <= result["total_bytes"]


async def test_only_requested_logs_are_described(folder: Path) -> None:
    """Unknown ones are left out; version 1 has neither the space nor an error for the whole request."""
    async with hosting(folder, *TOPICS) as broker:
        (result,) = await described(broker, [{"topic": "orders", "partitions": [1, 9]}], version=1)

        assert [
            (topic["name"], [partition["partition_index"] for partition in topic["partitions"]])
            for topic in result["topics"]  # type: ignore[attr-defined]
        ] == [("orders", [1])]


async def test_a_log_without_a_replica_has_no_lag(folder: Path) -> None:
    """DescribeLogDirsResponse.INVALID_OFFSET_LAG."""
    async with hosting(folder, *TOPICS) as broker:
        await broker.replicas.stop(ORDERS, delete=False)
        (result,) = await described(broker, [{"topic": "orders", "partitions": [0]}])

        assert result["topics"][0]["partitions"][0]["offset_lag"] == -1


async def test_a_directory_that_failed_has_the_error_instead_of_its_logs(folder: Path) -> None:
    """KAFKA_STORAGE_ERROR."""
    async with hosting(folder, *TOPICS) as broker:
        broker.logs.report_failure(ORDERS, OSError(5, "Input/output error"))
        (result,) = await described(broker, None)

        assert (result["error_code"], result["topics"], result["total_bytes"]) == (
            ErrorCode.KAFKA_STORAGE_ERROR,
            [],
            -1,
        )


async def test_a_caller_needs_the_right_to_describe_the_cluster(folder: Path) -> None:
    """CLUSTER_AUTHORIZATION_FAILED from version 3 on."""
    async with hosting(folder, guard=Refusing()) as broker:
        answer = await call(broker, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})

        assert answer is not None
        assert (answer["error_code"], answer["results"]) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
