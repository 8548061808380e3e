"""Controlled shutdown of a broker that leads 10,000 partitions, until the last broker is notified: Steward and a native controller (P4).

The broker is a socket that sends ControlledShutdown as a broker does, and repeats it while it leads partitions. Between rounds the states
are written back and the controller takes over again, so that every round starts from the same state in a process after warm-up.
"""

import asyncio
import time
from collections.abc import Iterator

from bench.harness import Effort, Row, duration, promised
from bench.zookeeper_mode.large_layout import (
    BROKERS,
    CHROOT,
    REPLICATION_FACTOR,
    LargeLayout,
    in_transactions,
    large_layout,
    states,
    topics_of,
)
from kafka_wire import ApiKey
from kafka_wire.net.connection import Connection
from kafka_zookeeper import paths
from lab.peers.kafka import INTERNAL

NAME = "shutdown_at_scale"
ABOUT = "controlled shutdown of the leader of 10,000 partitions, compared with a native controller (minutes)"

PARTITIONS = 10_000
QUICK_PARTITIONS = 1_000
ROUNDS = 5
LEAVING = BROKERS[0]
PEER = "only Kafka 3.9's controller, the same znodes and sockets"
ANSWER_TIMEOUT_MS = 120_000
ATTEMPTS = 20
"""A real broker sends the request three times, with pauses of five seconds."""
AT_LEAST = 3.0


def leaving_leads(_topic: int, _partition: int) -> int:
    """Put the first replica of every partition on the broker that shuts down."""
    return 0


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the row."""
    partitions = QUICK_PARTITIONS if effort.quick else PARTITIONS
    rounds = effort.runs(ROUNDS)
    with large_layout(partitions, leaving_leads) as stage:
        with stage.ours() as controller:
            ours = _shutdowns(stage, controller.ports[INTERNAL], rounds)
        _write_back(stage)
        with stage.native() as broker:
            theirs = _shutdowns(stage, broker.ports[INTERNAL], rounds)
    what = f"ControlledShutdown of the leader of {partitions:,} partitions, RF 3, 10 brokers that are sockets; from the request to its response and the last request to a broker"
    yield promised(duration(NAME, what, PEER, (ours, theirs)), "P4", AT_LEAST)


def _shutdowns(stage: LargeLayout, port: int, rounds: int) -> list[float]:
    figures = []
    for _ in range(rounds + 1):
        _write_back(stage)
        stage.takeover()
        stage.brokers.mark()
        figures.append(asyncio.run(_one_shutdown(stage, port)))
    return figures[1:]


def _write_back(stage: LargeLayout) -> None:
    for number in topics_of(stage.partitions):
        in_transactions(stage.client, list(states(number, leaving_leads)), create=False)


async def _one_shutdown(stage: LargeLayout, port: int) -> float:
    """Send the request as a broker does; return the seconds until it leads no partition and every new leader was notified."""
    epoch = stage.client.get(f"{CHROOT}{paths.broker(LEAVING)}")[1].czxid
    request = {"broker_id": LEAVING, "broker_epoch": epoch}
    connection = await Connection.open("127.0.0.1", port, client_id="leaving", request_timeout_ms=ANSWER_TIMEOUT_MS)
    try:
        asked_s = time.time()
        for _ in range(ATTEMPTS):
            answer = await connection.call(ApiKey.CONTROLLED_SHUTDOWN, request)
            assert answer["error_code"] == 0, f"the controller refused the shutdown: {answer}"
            if not answer["remaining_partitions"]:
                break
        answered_s = time.time()
        assert not answer["remaining_partitions"], "leaders are left on the broker"
    finally:
        await connection.close()
    stage.wait_until_received(stage.partitions * (REPLICATION_FACTOR - 1))
    return max(answered_s, stage.brokers.last_request_s()) - asked_s
