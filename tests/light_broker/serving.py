"""A standalone broker in the process of the test, on a free port."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_wire import ApiKey, Body
from kafka_wire.net.client import Node, NodeSettings
from light_broker.shell.process import BrokerProcess, ProcessOptions
from light_broker.shell.settings_reading import read_settings

HOST = "127.0.0.1"
TIMEOUT_MS = 20_000
BASE = {"node.id": "1", "listeners": f"PLAINTEXT://{HOST}:0", "offsets.topic.num.partitions": "1"}

IsOpen = Callable[[BrokerProcess], object]


def is_serving(process: BrokerProcess) -> bool:
    """Whether a broker answers requests."""
    return process.is_serving


@asynccontextmanager
async def standalone(
    folder: Path, settings: Mapping[str, str] | None = None, *, metrics: bool = False, is_open: IsOpen = is_serving
) -> AsyncIterator[BrokerProcess]:
    """Yield a broker with its data in `folder` when `is_open` is true of it; it is stopped at the end."""
    read = read_settings({**BASE, "log.dirs": str(folder), **(settings or {})})
    process = BrokerProcess(read.settings, ProcessOptions(metrics_port=0 if metrics else None))
    running = asyncio.create_task(process.run())
    try:
        while not is_open(process):
            assert not running.done(), await running
            await asyncio.sleep(0)
        yield process
    finally:
        process.stop()
        await running


@asynccontextmanager
async def client_of(
    process: BrokerProcess, listener: str = "PLAINTEXT", settings: NodeSettings | None = None
) -> AsyncIterator[Node]:
    """Yield a client of one of a broker's listeners."""
    node = Node(HOST, process.ports[listener], settings or NodeSettings(client_id="test"))
    try:
        yield node
    finally:
        await node.close()


async def create_topic(node: Node, name: str, partitions: int = 1) -> None:
    """Create a topic."""
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}
    answer = await node.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": TIMEOUT_MS}, timeout_ms=TIMEOUT_MS)
    assert [topic["error_code"] for topic in answer["topics"]] == [0]


async def topics_of(node: Node, names: list[str] | None = None) -> Mapping[str, Body]:
    """Return the descriptions of topics, by name; of all topics without names."""
    asked = None if names is None else [{"name": name} for name in names]
    answer = await node.call(
        ApiKey.METADATA, {"topics": asked, "allow_auto_topic_creation": False}, timeout_ms=TIMEOUT_MS
    )
    return {topic["name"]: topic for topic in answer["topics"]}
