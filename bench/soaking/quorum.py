"""`make soak ARGS="--quorum"`: random faults on live quorums of Java and Steward voters, under load in each voter that leads.

A round has one fault: a minority of the voters is killed, stopped or frozen; or all are killed at once; or all followers are frozen and the
leader is killed with records that only it has. During the fault and after it the voters' files and metrics are compared with everything
that was seen before. A round ends when all voters follow one leader and have new committed records. After some rounds all voters are
killed, and their logs are compared byte for byte; then the next quorum of `MIXES` starts.
"""

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bench.soaking.faults import Fault
from bench.soaking.invariants import BrokenError
from bench.soaking.quorum_history import History, differences
from lab.errors import LabError
from lab.peers.quorum import Load, Program, Quorum, Voters, quorum
from lab.processes.waiting import wait_until

ROUNDS_PER_QUORUM = 12
"""Enough elections for a log of many epochs; later rounds would mostly read a longer log."""

LONGEST_S = 6.0
"""Longer than the default fetch timeout (2 s), and than 1.5 of it, after which a leader without followers resigns."""

QUIET_TIMEOUT_S = 90.0
"""For an election of seconds, on a machine that is busy."""

POLL_S = 0.25

NEW_BYTES = 5_000
"""Records that must be committed after a fault: a second of the load."""

ALONE_BYTES = 2_000
"""Records of a leader whose followers are frozen, before it is killed."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Numbers of voters of each kind, and where the voters are named."""

    java: int
    stewards: int
    voters: Voters

    def __str__(self) -> str:
        level = 0 if self.voters is Voters.STATIC else 1
        return f"{self.java} Java + {self.stewards} Steward, kraft.version {level}"

    def start(self) -> AbstractContextManager[Quorum]:
        """Start a quorum."""
        ids = range(1, self.java + self.stewards + 1)
        return quorum(
            ids[: self.java],
            stewards=ids[self.java :],
            voters=self.voters,
            program=Program.RAFT_SERVER,
            load=Load().also_of_steward(),
        )


MIXES = (
    Mix(2, 1, Voters.STATIC),
    Mix(2, 3, Voters.INITIAL),
    Mix(1, 2, Voters.INITIAL),
    Mix(3, 2, Voters.STATIC),
    Mix(0, 5, Voters.INITIAL),
)


@dataclass(slots=True)
class QuorumSoak:
    """A running quorum and everything that was seen of it."""

    voters: Quorum
    seed: int
    history: History = field(default_factory=History)
    frozen: set[int] = field(default_factory=set)
    alone: dict[int, bytes] = field(default_factory=dict)
    """Logs of leaders that were killed with records that only they had."""
    story: list[str] = field(default_factory=list)

    def round(self, number: int) -> str:
        """Run one round and return its line. Raises BrokenError and LabError."""
        self.story.clear()
        self.alone.clear()
        self.wait_until_quiet()
        _, before = self.voters.leader_and_epoch()
        fault = self._draw(random.Random(f"{self.seed}/{number}"))
        self.story.append(fault.description)
        fault.begin()
        ends = time.monotonic() + fault.lasts_s
        while time.monotonic() < ends:
            self.observe()
            time.sleep(POLL_S)
        fault.end()
        self.story.append("the fault has ended")
        seconds = self.wait_until_quiet()
        leader, epoch = self.voters.leader_and_epoch()
        cut = [node_id for node_id, log in self.alone.items() if not self.voters[node_id].log_content().startswith(log)]
        truncated = f", node {cut[0]} truncated its log" if cut else ""
        kind = "Steward" if self.voters[leader].is_steward else "Java"
        return (
            f"{fault.description} | quiet after {seconds:.1f} s{truncated} | leader {leader} ({kind}), epochs {before} to {epoch} | "
            f"{len(self.history.committed):,} bytes committed"
        )

    def observe(self) -> None:
        """Compare files and metrics with what was seen before. Raises BrokenError."""
        broken: list[str] = []
        for node_id, node in self.voters.items():
            broken += self.history.add_election(node_id, *node.leader_and_epoch())
            if node.is_steward and node.process.running and node_id not in self.frozen:
                broken += self.history.add_committed(node_id, node.records_before(node.high_watermark()))
        if broken:
            raise BrokenError("; ".join(broken))

    def wait_until_quiet(self) -> float:
        """Return the seconds until all voters followed one leader and had new committed records. Raises BrokenError and LabError."""
        target_bytes: list[int] = []

        def is_quiet() -> bool:
            self.observe()
            ended = [node for node in self.voters.values() if not node.process.running]
            if ended:
                raise BrokenError(f"{ended[0].process.name} ended with exit code {ended[0].process.exit_code}")
            known = {node.leader_and_epoch() for node in self.voters.values()}
            if len(known) > 1 or next(iter(known))[0] < 0:
                return False
            if not target_bytes:
                target_bytes.append(len(self.history.committed) + NEW_BYTES)
            expected = self.history.committed[: target_bytes[0]]
            return len(expected) == target_bytes[0] and all(
                node.log_content().startswith(expected) for node in self.voters.values()
            )

        return wait_until(
            is_quiet,
            timeout_s=QUIET_TIMEOUT_S,
            what="all voters follow one leader and commit",
            context=lambda: str({node_id: node.leader_and_epoch() for node_id, node in self.voters.items()}),
            interval_s=POLL_S,
        )

    def finish(self) -> str:
        """Kill all voters, compare their logs, and return the line of the result. Raises BrokenError."""
        for node in self.voters.values():
            node.kill()
        logs = {node_id: node.records_before(sys.maxsize) for node_id, node in self.voters.items()}
        if broken := [*self.history.lost(logs), *differences(logs)]:
            raise BrokenError("; ".join(broken))
        equal_bytes = min(map(len, logs.values()))
        return (
            f"the logs of {len(logs)} voters are equal: {equal_bytes:,} bytes on all, {len(self.history.committed):,} of them known as "
            f"committed; {len(self.history.leaders)} epochs had a leader"
        )

    def _draw(self, source: random.Random) -> Fault:
        """Draw the fault of a round, of the leader and the followers as they are now."""
        leader, _ = self.voters.leader_and_epoch()
        lasts_s = round(source.uniform(0.2, LONGEST_S), 1)
        kind = source.choices(("some", "alone", "all"), weights=(75, 15, 10), k=1)[0]
        followers = [node_id for node_id in self.voters if node_id != leader]
        if kind == "all":
            nodes = list(self.voters)
            return self._fault("kill -9 of all voters", lasts_s, [(node_id, "kill -9") for node_id in nodes])
        if kind == "alone":
            message = f"SIGSTOP of all followers and kill -9 of leader {leader}"
            faults = [*((node_id, "SIGSTOP") for node_id in followers), (leader, "kill -9")]
            return self._fault(message, lasts_s, faults, before_last=lambda: self._wait_until_alone(leader))
        source.shuffle(followers)
        count = source.randint(1, (len(self.voters) - 1) // 2)
        # The leader is hit in about every second round.
        chosen = ([leader, *followers] if source.random() < 0.5 else followers)[:count]
        faults = [(node_id, source.choice(("kill -9", "SIGTERM", "SIGSTOP"))) for node_id in chosen]
        message = ", ".join(f"{kind} of {self._name(node_id, leader)}" for node_id, kind in faults)
        return self._fault(message, lasts_s, faults)

    def _fault(
        self,
        message: str,
        lasts_s: float,
        faults: Sequence[tuple[int, str]],
        before_last: Callable[[], None] = lambda: None,
    ) -> Fault:
        def begin() -> None:
            for place, (node_id, kind) in enumerate(faults):
                if place == len(faults) - 1:
                    before_last()
                node = self.voters[node_id]
                if kind == "SIGSTOP":
                    self.frozen.add(node_id)
                {"kill -9": node.kill, "SIGTERM": node.stop, "SIGSTOP": node.pause}[kind]()

        def end() -> None:
            started = [self.voters[node_id] for node_id, kind in faults if kind != "SIGSTOP"]
            for node_id, kind in faults:
                if kind == "SIGSTOP":
                    self.voters[node_id].resume()
            for node in started:
                node.launch()
            for node in started:
                node.wait_until_ready()
            self.frozen.clear()

        return Fault(f"{message} for at least {lasts_s} s", lasts_s, begin, end)

    def _wait_until_alone(self, leader: int) -> None:
        """Wait until the leader has records that no follower has, and remember its log."""
        replicated = max(node.log_bytes() for node_id, node in self.voters.items() if node_id != leader)
        node = self.voters[leader]
        wait_until(
            lambda: node.log_bytes() > replicated + ALONE_BYTES,
            timeout_s=QUIET_TIMEOUT_S,
            what=f"leader {leader} has records that no follower has",
        )
        self.alone[leader] = node.records_before(sys.maxsize)

    def _name(self, node_id: int, leader: int) -> str:
        kind = "Steward" if self.voters[node_id].is_steward else "Java"
        return f"{'leader' if node_id == leader else 'follower'} {node_id} ({kind})"


def soak_quorum(seed: int, minutes: float, first_round: int) -> int:
    """Run rounds until the time is over and return the exit status."""
    print(f"seed {seed}", flush=True)
    until = time.monotonic() + minutes * 60
    number = first_round
    while time.monotonic() < until:
        mix = MIXES[number // ROUNDS_PER_QUORUM % len(MIXES)]
        with mix.start() as voters:
            running = QuorumSoak(voters, seed)
            try:
                while True:
                    print(f"round {number}, {mix}: {running.round(number)}", flush=True)
                    number += 1
                    if time.monotonic() >= until or number % ROUNDS_PER_QUORUM == 0:
                        break
                print(f"{mix}: {running.finish()}", flush=True)
            except (BrokenError, LabError, AssertionError) as broken:
                print(f"BROKEN in round {number} of seed {seed}, {mix}: {broken}", *running.story, sep="\n  ")
                print(f"logs and data: {_keep(voters.folder)}", flush=True)
                return 1
    print(f"{number - first_round} rounds of seed {seed} without a violation")
    return 0


def _keep(folder: Path) -> Path:
    """Copy the logs and data of all voters to a folder that is not cleaned up."""
    return Path(shutil.copytree(folder, Path(tempfile.mkdtemp(prefix="kafka-steward-soak-")) / "quorum"))
