"""A voter of Steward that appends records while it leads: what TestRaftServer is for Kafka's side of `bench.quorum.appends`.

    python -m lab.peers.quorum_load RECORDS_PER_S RECORD_BYTES --config FILE --metrics-port PORT --topic NAME --topic-id ID

Each record is one append, as in TestRaftServer. Every five seconds it prints TestRaftServer's line with the times from append to
commit. Leaves out the options of `steward quorum` that no benchmark needs.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import time
from pathlib import Path

from controller_core.quorum.states import Leader
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.endpoints import parse_uuid
from controller_core.shell.quorum.process import NodeOptions, QuorumProcess
from controller_core.shell.quorum.settings_file import read_settings_file
from controller_core.shell.quorum.wire_requests import LogTopic
from kafka_wire import ErrorCode

REPORT_INTERVAL_S = 5.0
"""TestRaftServer's."""

TICK_S = 0.001
"""Between two counts of the records that are due."""

OUTSTANDING_MAX = 10_000
"""Appends without a commit: at a rate that is too high, further ones would only use memory."""


class Load:
    """Appends of one voter at a rate, and the times until they were committed."""

    def __init__(self, process: QuorumProcess, records_per_s: int, record_bytes: int) -> None:
        self._process = process
        self._records_per_s = records_per_s
        self._payload = bytes(record_bytes)
        self._outstanding: set[asyncio.Task[None]] = set()
        self._latencies_ms: list[float] = []

    async def run(self) -> None:
        """Append until cancelled, in every epoch in which the node leads."""
        while True:
            driver, epoch = self._leadership()
            if driver is not None:
                await self._lead(driver, epoch)
            await asyncio.sleep(TICK_S)

    def _leadership(self) -> tuple[Driver | None, int]:
        """Return the driver and the epoch in which it leads; None: it does not lead."""
        driver = self._process.driver
        if driver is None or driver.node is None or not isinstance(driver.node.state, Leader):
            return None, -1
        return driver, driver.node.state.epoch

    async def _lead(self, driver: Driver, epoch: int) -> None:
        start_s = reported_s = time.monotonic()
        appended = 0
        while self._leadership() == (driver, epoch):
            now_s = time.monotonic()
            due = int((now_s - start_s) * self._records_per_s) - appended
            due = min(due, OUTSTANDING_MAX - len(self._outstanding))
            for _ in range(due):
                task = asyncio.create_task(self._append(driver, epoch))
                self._outstanding.add(task)
                task.add_done_callback(self._outstanding.discard)
            appended += due
            if now_s - reported_s >= REPORT_INTERVAL_S:
                self._report(now_s - reported_s)
                reported_s = now_s
            await asyncio.sleep(TICK_S)

    async def _append(self, driver: Driver, epoch: int) -> None:
        start_s = time.monotonic()
        result = await driver.append(epoch, [self._payload])
        if result.error is ErrorCode.NONE and await driver.committed(result.base_offset):
            self._latencies_ms.append((time.monotonic() - start_s) * 1000)

    def _report(self, interval_s: float) -> None:
        latencies_ms, self._latencies_ms = self._latencies_ms, []
        if len(latencies_ms) > 1:
            cuts = statistics.quantiles(latencies_ms, n=1000, method="inclusive")
            rate = len(latencies_ms) * len(self._payload) / interval_s
            print(  # noqa: T201 - TestRaftServer prints its rate, and its users read it
                f"Throughput (bytes/second): {rate:.2f}, Latency (ms): {cuts[749]:.1f} p75 {cuts[989]:.1f} p99 {cuts[998]:.1f} p999",
                flush=True,
            )


async def _run(process: QuorumProcess, records_per_s: int, record_bytes: int) -> None:
    load = asyncio.create_task(Load(process, records_per_s, record_bytes).run())
    gc.freeze()  # as `steward quorum` does
    try:
        await process.run()
    finally:
        load.cancel()


def main(arguments: list[str]) -> None:
    """Run the voter until it is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records_per_s", type=int)
    parser.add_argument("record_bytes", type=int)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--metrics-port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--topic-id", type=parse_uuid, required=True)
    parsed = parser.parse_args(arguments)
    options = NodeOptions(topic=LogTopic(parsed.topic, parsed.topic_id), metrics_port=parsed.metrics_port)
    process = QuorumProcess(read_settings_file(parsed.config).settings, options)
    asyncio.run(_run(process, parsed.records_per_s, parsed.record_bytes))


if __name__ == "__main__":
    main(sys.argv[1:])
