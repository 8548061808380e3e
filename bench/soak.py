"""`make soak`: random faults on a cluster under a Steward controller and under load, for any time.

    make soak                                    ten minutes of hostile requests to the front, then five minutes of faults
    make soak ARGS="--minutes 60 --seed 7"       an hour of the faults of seed 7
    make soak ARGS="--minutes 0 --front-minutes 0 --properties"    only tests: more examples, and those that `make test` leaves out
    make soak ARGS="--repeat 20"                 nothing but all live tests, 20 times, alongside two busy processes
    make soak ARGS="--alone"                     nothing but each test that needs processes, alone
    make soak ARGS="--quorum --minutes 10"       nothing but faults of quorums of Java and Steward voters
    make soak ARGS="--light --kills 200"         nothing but kills, full and slow disks of light brokers under load
    make soak ARGS="--mixed --faults 60"         nothing but kills, freezes and cut networks of brokers of Kafka and a light broker
    make soak ARGS="--analytics"                 nothing but faults of the balance analytics; `--analytics NAME` runs some

Each round prints a line: its faults, the requests during them, the time until the cluster was quiet, and the result of the load. The
first broken invariant ends the run with exit status 1, the seed, the round and the folder of all logs.
"""

import argparse
import datetime as dt
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.listener.fuzz import fuzz
from bench.soaking import alone, faults, invariants, repeats, snapshot
from bench.soaking.balance.soak import NAMES, soak_analytics
from bench.soaking.invariants import BrokenError
from bench.soaking.light import DISK_FAULTS, KILLS, soak_light
from bench.soaking.mixed import FAULTS, soak_mixed
from bench.soaking.quorum import soak_quorum
from bench.soaking.requests import Administrator
from bench.soaking.snapshot import Snapshot
from lab.checks.traffic import Traffic
from lab.errors import LabError
from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.kafka_tools import kafka_topics
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder

ROOT = Path(__file__).resolve().parents[1]
BROKERS = (1, 2, 3, 4)
CHROOT = "/soak"
MINUTES = 5.0
FRONT_MINUTES = 10.0

QUIET_TIMEOUT_S = 120.0
"""For steps of seconds: brokers restart, replicas catch up, moves and deletions end."""
POLL_S = 0.25

RECORDS_PER_S = 100
"""A record each 10 ms: more than in tests, so that a short fault meets records of each partition."""

ROUNDS_PER_TOPIC = 10
"""Rounds until a new topic of the load: the whole topic is read back after each round."""
EFFORT = 20
"""Times the usual number of examples in the property tests."""
PROPERTY_TESTS = (
    "tests/balance_analytics/jobs/test_publishing.py",
    "tests/kafka_log",
    "tests/kafka_node",
    "tests/kafka_wire",
    "tests/controller_core/decisions",
    "tests/controller_core/rules",
    "tests/controller_core/zookeeper_mode",
    "tests/kafka_operator",
    "tests/reconciler",
    "tests/spark_operator",
    "tests/sim/test_seeds.py",
)
SIM_SEEDS = 1_000
"""Seeds of simulated quorums per unit of the effort: 20,000 by default, a quarter of an hour."""
PROPERTY_TIMEOUT_S = "3600"


@dataclass(slots=True)
class Soak:
    """The running cluster and its last snapshot."""

    cluster: KafkaCluster
    controller: StewardController
    seed: int
    last: Snapshot
    story: list[str] = field(default_factory=list)
    """Actions of this round, with the time of day in UTC, as in the logs."""

    def round(self, number: int) -> str:
        """Run one round and return its line. Raises BrokenError."""
        source = random.Random(f"{self.seed}/{number}")
        load = f"load-{number // ROUNDS_PER_TOPIC}"
        self.story.clear()
        self._make(load)
        wanted = invariants.Wanted(present=set(self.last.topics))
        administrator = Administrator(self.cluster, source, wanted, number)
        drawn = faults.draw(source, self.cluster, self.controller)
        before_epoch = self.last.controller_epoch
        with Traffic(self.cluster.bootstrap(), load, rate_per_s=RECORDS_PER_S) as traffic:
            self._note(administrator.ask(self.snapshot(), load))
            for fault in drawn:
                self._note(fault.description)
                fault.begin()
            for _ in range(source.randint(0, 2)):
                self._note(administrator.ask(self.snapshot(), load))
            for fault in drawn:
                time.sleep(fault.lasts_s)
                fault.end()
                self._note(f"the end of: {fault.description}")
            seconds = self.wait_until_quiet(wanted)
            traffic.wait_for_acks(50)
            report = traffic.stop()
        if not report.ok or report.duplicates or report.out_of_order:
            raise BrokenError(
                f"the load on {load}: {report.summary()}; {[*report.twice, *report.errors, *report.consumer_errors][:3]}"
            )
        message = "; ".join(fault.description for fault in drawn) or "no fault"
        asked = "; ".join(administrator.asked)
        epochs = f"controller epoch {before_epoch} to {self.last.controller_epoch}"
        return f"{message} | {asked} | quiet after {seconds:.1f} s, {epochs} | {report.summary()}"

    def snapshot(self) -> Snapshot:
        """Take a snapshot and check the invariants that must always hold. Raises BrokenError."""
        now = snapshot.take(self.cluster)
        if wrong := list(invariants.always(now, self.last, self.controller.controller_id)):
            raise BrokenError("; ".join(wrong))
        self.last = now
        return now

    def wait_until_quiet(self, wanted: invariants.Wanted) -> float:
        """Return the seconds until all changes had ended. Raises BrokenError with those that had not."""
        started = time.monotonic()
        while left := list(invariants.once_quiet(self.snapshot(), wanted, self.controller.controller_id)):
            if time.monotonic() - started > QUIET_TIMEOUT_S:
                raise BrokenError(f"after {QUIET_TIMEOUT_S:g} s: {'; '.join(left)}")
            time.sleep(POLL_S)
        return time.monotonic() - started

    def _note(self, what: str) -> None:
        self.story.append(f"{dt.datetime.now(dt.UTC):%H:%M:%S.%f} {what}")

    def _make(self, load: str) -> None:
        if load in self.last.topics:
            return
        size = ("--partitions", "6", "--replication-factor", "3", "--config", "min.insync.replicas=2")
        kafka_topics("--bootstrap-server", self.cluster.bootstrap(), "--create", "--topic", load, *size)
        self.wait_until_quiet(invariants.Wanted(present={load}))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; without --seed, the seed is random."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="Random faults under load.")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"start rounds for this time ({MINUTES:g})")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(1_000_000), help="seed of the random choices, to repeat a run"
    )
    message = f"first send mutated requests to the listener for this time ({FRONT_MINUTES:g}; 0: none)"
    parser.add_argument("--front-minutes", type=float, default=FRONT_MINUTES, help=message)
    parser.add_argument("--first-round", type=int, default=0, metavar="N", help="start with this round of the seed")
    parser.add_argument("--keep-logs", action="store_true", help="keep all logs of a successful run too")
    message = "first run the property tests with more examples, and the tests that make test leaves out"
    parser.add_argument("--properties", action="store_true", help=message)
    parser.add_argument(
        "--effort", type=int, default=EFFORT, help=f"factor on the examples of property tests ({EFFORT})"
    )
    message = "run only the tests on clusters and on a Kubernetes API, so many times, alongside busy processes"
    parser.add_argument("--repeat", type=int, default=0, metavar="ROUNDS", help=message)
    message = "run only each test that needs processes, in a run of its own: it must not depend on earlier tests"
    parser.add_argument("--alone", action="store_true", help=message)
    parser.add_argument("--light", action="store_true", help="run only faults of light brokers under load")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"with --light: number of kills (default: {KILLS})")
    message = f"with --light: number of full and slow disks (default: {DISK_FAULTS})"
    parser.add_argument("--disk-faults", type=int, default=DISK_FAULTS, help=message)
    message = (
        "run only kills, freezes and cut networks of brokers of Kafka 4.3 and a light broker that replicate each other"
    )
    parser.add_argument("--mixed", action="store_true", help=message)
    parser.add_argument(
        "--stewards", action="store_true", help="with --mixed: under three controllers of Steward, which fail too"
    )
    parser.add_argument(
        "--faults", type=int, default=FAULTS, help=f"with --mixed: number of faults (default: {FAULTS})"
    )
    parser.add_argument("--quorum", action="store_true", help="run only faults of quorums, for --minutes")
    message = f"run only faults of the balance analytics: all, or some of {', '.join(NAMES)}"
    parser.add_argument("--analytics", nargs="*", choices=NAMES, metavar="NAME", help=message)
    return parser.parse_args(arguments)


def properties(effort: int) -> int:
    """Run the property tests with many more examples, then all other tests with the mark `soak`; return pytest's exit status."""
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "soak", "KAFKA_WIRE_EFFORT": str(effort)}
    environment["SIM_SEEDS"] = str(SIM_SEEDS * effort)
    elsewhere = ("tests", *(f"--ignore={path}" for path in PROPERTY_TESTS))
    for tests in (PROPERTY_TESTS, ("-m", "soak", *elsewhere)):
        command = [sys.executable, "-m", "pytest", "-q", f"--timeout={PROPERTY_TIMEOUT_S}", *tests]
        if status := subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            return status
    return 0


def soak(seed: int, minutes: float, first_round: int, *, keep: bool = False) -> int:
    """Run rounds until the time is over and return the exit status."""
    print(f"seed {seed}", flush=True)
    number = first_round
    with ExitStack() as stack:
        folder = stack.enter_context(lab_folder())
        cluster = stack.enter_context(kafka_cluster(BROKERS, start=False, folder=folder, chroot=CHROOT))
        controller = StewardController(cluster.zookeeper_connect, folder)
        stack.callback(controller.close)
        controller.start()
        cluster.start_brokers()
        running = Soak(cluster, controller, seed, snapshot.take(cluster))
        until = time.monotonic() + minutes * 60
        try:
            while time.monotonic() < until:
                print(f"round {number}: {running.round(number)}", flush=True)
                number += 1
        except (BrokenError, LabError, AssertionError) as broken:
            print(f"BROKEN in round {number} of seed {seed}: {broken}", *running.story, sep="\n  ")
            print(f"logs: {keep_logs(folder)}", flush=True)
            return 1
        if keep:
            print(f"logs: {keep_logs(folder)}")
    print(f"{number - first_round} rounds of seed {seed} without a violation")
    return 0


def keep_logs(folder: Path) -> Path:
    """Copy the logs of all processes to a folder that is not cleaned up."""
    kept = Path(tempfile.mkdtemp(prefix="kafka-steward-soak-"))
    for log in folder.glob("*.log"):
        shutil.copy(log, kept)
    return kept


def main(arguments: Sequence[str]) -> int:
    """Run the chosen parts and return the exit status."""
    options = parse(arguments)
    if options.repeat > 0:
        return repeats.repeat(options.repeat)
    if options.alone:
        return alone.run_each_alone()
    if options.light:
        return soak_light(options.kills, options.disk_faults, options.seed)
    if options.mixed:
        return soak_mixed(options.faults, options.seed, stewards=options.stewards)
    if options.quorum:
        return soak_quorum(options.seed, options.minutes, options.first_round)
    if options.analytics is not None:
        return soak_analytics(options.analytics)
    if options.properties and (status := properties(options.effort)):
        return status
    if options.front_minutes > 0 and (broken := fuzz(options.seed, options.front_minutes * 60)):
        print(f"BROKEN with seed {options.seed}: {broken}", flush=True)
        return 1
    if options.minutes <= 0:
        return 0
    return soak(options.seed, options.minutes, options.first_round, keep=options.keep_logs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
