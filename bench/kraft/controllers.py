"""Three controllers of one kind on the same metadata, Steward's or Kafka's, and a client that asks all of them."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path

from bench.broker_load import cpu_seconds
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node
from lab.peers.quorum import HOST, Quorum, QuorumNode, quorum
from lab.processes.waiting import wait_until

VOTERS = (1, 2, 3)
PATIENCE_S = 600.0
"""A million partitions are loaded in about a minute."""
RETRY_S = 0.001
IDLE_CPU_SHARE = 0.15
"""Share of a processor that a controller may use while it is idle: Java's uses about 0.05."""
IDLE_CHECK_S = 1.0


class Kind(Enum):
    """Whose controllers they are."""

    STEWARD = "Steward's"
    KAFKA = "Kafka 4.3's"


def quorum_of(
    kind: Kind, settings: Mapping[str, str], heap: str, *, start: bool
) -> contextlib.AbstractContextManager[Quorum]:
    """Return three voters of one kind; Kafka's run in usual JVMs with this heap."""
    is_steward = kind is Kind.STEWARD
    return quorum(
        () if is_steward else VOTERS,
        stewards=VOTERS if is_steward else (),
        settings=settings,
        heap=heap,
        is_small=False,
        start=start,
    )


@contextlib.contextmanager
def controllers(kind: Kind, snapshot: Path, settings: Mapping[str, str], heap: str) -> Iterator[Quorum]:
    """Yield three voters that have a snapshot and an empty log, not started; `heap` as of quorum_of."""
    with quorum_of(kind, settings, heap, start=False) as voters:
        for node in voters.values():
            node.log_folder.mkdir(exist_ok=True)
            shutil.copy(snapshot, node.log_folder)
        yield voters


def wait_until_idle(nodes: Iterable[QuorumNode]) -> None:
    """Wait until no node computes: each has loaded its metadata."""
    processes = [node.process for node in nodes]

    def is_idle() -> bool:
        before = [cpu_seconds(process.pid) for process in processes]
        time.sleep(IDLE_CHECK_S)
        spent = [cpu_seconds(process.pid) - begun_s for process, begun_s in zip(processes, before, strict=True)]
        return max(spent) < IDLE_CPU_SHARE * IDLE_CHECK_S

    wait_until(is_idle, timeout_s=PATIENCE_S, what="all controllers are idle")


def cold_start_s(voters: Quorum, topic: str) -> float:
    """Start all voters; return the seconds to the first committed change."""

    def launch() -> None:
        for node in voters.values():
            node.launch()

    return until_written(voters.values(), topic, 1, launch)


def until_written(nodes: Iterable[QuorumNode], topic: str, value_ms: int, act: Callable[[], object]) -> float:
    """Do something; return the seconds until one of the nodes has committed a change of a topic's config, which each is asked for."""
    return asyncio.run(_until_written(list(nodes), topic, value_ms, act))


async def _until_written(nodes: list[QuorumNode], topic: str, value_ms: int, act: Callable[[], object]) -> float:
    clients = [Node(HOST, node.member.port) for node in nodes]
    began_s = time.perf_counter()
    act()
    attempts = [asyncio.create_task(_written(client, config_change(topic, value_ms))) for client in clients]
    try:
        async with asyncio.timeout(PATIENCE_S):
            ended, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
        took_s = time.perf_counter() - began_s
        for attempt in ended:
            attempt.result()  # Raises what ended it: a refused change is no figure.
        return took_s
    finally:
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
        for client in clients:
            await client.close()


async def _written(client: Node, body: Body) -> None:
    """Send a change until it is committed; a controller that is not active, or not there yet, is asked again."""
    while True:
        with contextlib.suppress(ConnectionFailed):
            answer = await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, body, timeout_ms=int(PATIENCE_S * 1000))
            error = answer["responses"][0]["error_code"]
            if error == ErrorCode.NONE:
                return
            assert error == ErrorCode.NOT_CONTROLLER, ErrorCode(error).name
        await asyncio.sleep(RETRY_S)


def config_change(topic: str, value_ms: int) -> Body:
    """Return a request that sets a config of a topic."""
    configs = [{"name": "retention.ms", "config_operation": 0, "value": str(value_ms)}]
    resource = {"resource_type": 2, "resource_name": topic, "configs": configs}
    return {"resources": [resource], "validate_only": False}


async def poll(holds: Callable[[], Awaitable[bool]], interval_s: float) -> None:
    """Ask until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await holds():
                return
            await asyncio.sleep(interval_s)
