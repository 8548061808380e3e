"""Requests about groups to a broker with real logs, as clients send them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.offsets_topic import OFFSETS_TOPIC
from light_broker.core.metadata_view import PartitionView
from light_broker.shell.broker import Broker
from tests.light_broker.core.groups.members import subscription
from tests.light_broker.fixed_control import partition_view, topic_view
from tests.light_broker.hosting import hosting
from tests.light_broker.shell.apis.calls import call
from tests.waiting import until

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


@asynccontextmanager
async def coordinating(
    folder: Path, state: PartitionView | None = None, *, is_loaded: bool = True, **parts: Any
) -> AsyncIterator[Broker]:
    """Yield a broker that leads the only partition of `__consumer_offsets`, and `orders` with two partitions."""
    offsets = topic_view(OFFSETS_TOPIC, state or partition_view(), number=9)
    orders = topic_view("orders", partition_view(), partition_view())
    async with hosting(folder, orders, offsets, **parts) as broker:
        if is_loaded:
            await loaded(broker)
        yield broker


async def loaded(broker: Broker) -> None:
    """Wait until the groups are loaded."""
    await until(lambda: not broker.groups.is_loading)


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


async def ask(broker: Broker, key: ApiKey, body: Body, *, version: int | None = None) -> Body:
    """Return the response to a request."""
    answer = await call(broker, key, body, version=version)
    assert answer is not None
    return answer


async def join(
    broker: Broker, group_id: str = "g", *, version: int = 9, member_id: str = "", instance_id: str | None = None
) -> Body:
    """Join a group, with the given out member id where the version has that."""
    body: Body = {
        "group_id": group_id,
        "session_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription("orders")}],
    }
    if version >= 1:
        body["rebalance_timeout_ms"] = 60_000
    if instance_id is not None:
        body["group_instance_id"] = instance_id
    answer = await ask(broker, ApiKey.JOIN_GROUP, body, version=version)
    if answer["error_code"] == ErrorCode.MEMBER_ID_REQUIRED:
        return await join(broker, group_id, version=version, member_id=answer["member_id"], instance_id=instance_id)
    return answer


async def sync(broker: Broker, joined: Body, group_id: str = "g", *, version: int = 5) -> Body:
    """Fetch the assignment; the leader brings those of all."""
    body: Body = {
        "group_id": group_id,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
        "assignments": [{"member_id": member["member_id"], "assignment": b"mine"} for member in joined["members"]],
    }
    if version >= 5:
        body |= {"protocol_type": "consumer", "protocol_name": "range"}
    return await ask(broker, ApiKey.SYNC_GROUP, body, version=version)


async def commit(
    broker: Broker,
    offset: int,
    group_id: str = "g",
    *,
    version: int = 9,
    joined: Body | None = None,
    metadata: str = "m",
) -> ErrorCode:
    """Commit an offset of `orders-0`, as a member or as a client without a group."""
    topic: Body = {
        "partitions": [{"partition_index": 0, "committed_offset": offset, "committed_metadata": metadata}],
    }
    topic |= {"topic_id": broker.view.topics["orders"].id} if version >= 10 else {"name": "orders"}
    body: Body = {"group_id": group_id, "topics": [topic]}
    if joined is not None:
        body |= {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    answer = await ask(broker, ApiKey.OFFSET_COMMIT, body, version=version)
    ((partition,),) = [topic["partitions"] for topic in answer["topics"]]
    return ErrorCode.of(partition["error_code"])


async def committed(
    broker: Broker, group_id: str = "g", *, version: int = 9, require_stable: bool = False, partition: int = 0
) -> tuple[int, ErrorCode]:
    """Return the committed offset of `orders`, and the error of the partition or the group."""
    topic: Body = {"partition_indexes": [partition]}
    topic |= {"topic_id": broker.view.topics["orders"].id} if version >= 10 else {"name": "orders"}
    body: Body = {"groups": [{"group_id": group_id, "topics": [topic]}]}
    if version < 8:
        body = {"group_id": group_id, "topics": [topic]}
    if version >= 7:
        body["require_stable"] = require_stable
    answer = await ask(broker, ApiKey.OFFSET_FETCH, body, version=version)
    group = answer["groups"][0] if version >= 8 else answer
    if not group["topics"]:
        return -1, ErrorCode.of(group["error_code"])
    found = group["topics"][0]["partitions"][0]
    return found["committed_offset"], ErrorCode.of(found["error_code"])
