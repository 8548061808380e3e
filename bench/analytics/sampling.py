"""A sampler of 200,000 partitions on simulated brokers: the time of one sample, decoded into columns, and the sampler's memory.

The sampler is the product's process, `steward sampler`; its own metrics report the time of samples, the system reports memory. The first
samples, which open connections and fill the brokers' caches, are not counted. With real brokers, their answer times are added, spread over
all of them.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.analytics.answering_brokers import AnsweringBrokers
from bench.harness import Better, Effort, Row, Side, promised, side_of
from lab.peers.steward import ROOT
from lab.processes.folder import lab_folder
from lab.processes.http_get import http_get
from lab.processes.ports import free_port, release_port
from lab.processes.process import Process
from lab.processes.waiting import wait_until

NAME = "sampling"
ABOUT = "a sample of 200,000 partitions on simulated brokers, into columns and into the samples topic (a minute)"

BROKERS, TOPICS, PARTITIONS = 20, 2_000, 100
QUICK_TOPICS = 100
ROUNDS = 5
INTERVAL_S = 10
"""The shortest interval that the sampler accepts."""
SAMPLE_LIMIT_S, MEMORY_LIMIT_MB = 5.0, 150.0
"""The promised limits."""
PATIENCE_S = 120.0
KEPT = 'steward_sampler_samples_total{result="stored"}'


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the time of a sample, the time with its storage, and the peak of memory."""
    topics = QUICK_TOPICS if effort.quick else TOPICS
    rounds = effort.runs(ROUNDS)
    brokers = AnsweringBrokers(BROKERS, topics, PARTITIONS)
    with lab_folder(None) as folder, sampler(brokers, folder) as (process, port):
        wait_until(lambda: _is_whole(port), timeout_s=PATIENCE_S, what="a complete sample", context=process.log_tail)
        durations: dict[str, list[float]] = {"sample": [], "write": []}
        before = _after_next(port)
        for _ in range(rounds):
            after = _after_next(port)
            for name, seconds in durations.items():
                sums = f"steward_sampler_{name}_duration_seconds_sum"
                seconds.append(after[sums] - before[sums])
            before = after
        partitions = _samples(port)["steward_sampler_partitions"]
        if partitions < topics * PARTITIONS or not _is_whole(port):
            raise AssertionError(f"{partitions:.0f} partitions, left out: {_left_out(port)}")
        highest = process.highest_resident_bytes
    what = f"{partitions:,.0f} partitions of {BROKERS} brokers"
    yield limited(
        "look", f"one sample of {what}, decoded into columns", "s", side_of(durations["sample"]), SAMPLE_LIMIT_S
    )
    message = f"the sample and its write to the samples topic, {what}"
    whole = [sample_s + other for sample_s, other in zip(durations["sample"], durations["write"], strict=True)]
    yield limited("look_and_keep", message, "s", side_of(whole), float(INTERVAL_S), promise=False)
    memory = side_of([highest / 1e6])
    yield limited("memory", f"resident memory of the sampler at its highest, {what}", "MB", memory, MEMORY_LIMIT_MB)


@contextlib.contextmanager
def sampler(brokers: AnsweringBrokers, folder: Path) -> Iterator[tuple[Process, int]]:
    """Yield a running sampler and the port of its metrics."""
    port = free_port()
    brokers.start()
    command = [sys.executable, "-m", "steward", "sampler", f"--bootstrap-server={brokers.bootstrap}"]
    arguments = [f"--interval-s={INTERVAL_S}", f"--metrics-port={port}"]
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}
    process = Process("sampler", [*command, *arguments], folder, environment=path)
    try:
        process.launch()
        process.wait_until_ready(lambda: http_get(port, "/healthz") is not None)
        yield process, port
    finally:
        process.kill()
        brokers.close()
        release_port(port)


def limited(name: str, what: str, unit: str, figure: Side, limit: float, *, promise: bool = True) -> Row:
    """Return a row that compares a figure with its limit."""
    row = Row(f"{NAME}.{name}", what, "the limit", unit, Better.LOWER, figure, side_of([limit]), 1)
    return promised(row, "", 1.0) if promise else row


def _samples(port: int) -> dict[str, float]:
    answer = http_get(port, "/metrics")
    lines = [] if answer is None else answer.body.decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def _after_next(port: int) -> dict[str, float]:
    """Return all metrics right after the next sample was stored."""
    kept = _kept(port)
    wait_until(lambda: _kept(port) > kept, timeout_s=PATIENCE_S, what="another sample is stored")
    return _samples(port)


def _kept(port: int) -> float:
    return _samples(port).get(KEPT, 0.0)


def _is_whole(port: int) -> bool:
    return _kept(port) > 0 and not _left_out(port)


def _left_out(port: int) -> dict[str, float]:
    return {name: value for name, value in _samples(port).items() if "steward_sampler_missing{" in name and value}
