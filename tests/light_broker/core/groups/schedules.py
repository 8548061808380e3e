"""Random schedules of clients, failures and time, with the laws that hold after each step.

    python -m tests.light_broker.core.groups.schedules SEED

prints the steps of one seed. A step is a request of a client, the end of an append (committed, timed out, refused), a change of the coordinator that
may lose records above the high watermark, or a wait.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kafka_wire import ErrorCode
from light_broker.core.groups.effects import Joined, Synced
from light_broker.core.groups.events import LeaveGroup, Leaver
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.groups.states import Group, Protocol
from tests.light_broker.core.groups.members import Client
from tests.light_broker.core.groups.world import World, loaded

STEPS = 60
QUIET_MS = 30 * 60 * 1000
"""Time after which every session and rebalance without requests has ended."""

RESETS = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION}
"""Errors after which a client begins as a new member."""


class LawBrokenError(AssertionError):
    """A law does not hold."""


def require(holds: object, law: str) -> None:
    """Raise LawBrokenError for a law that does not hold."""
    if not holds:
        raise LawBrokenError(law)


@dataclass
class Schedule:
    """One schedule."""

    seed: int
    log: Callable[[str], None] = lambda _: None
    acked: int = -1
    """Highest offset whose commit was answered."""
    seen: int = -1
    """Highest offset that a reader saw."""
    next_offset: int = 0
    has_failed_append: bool = False
    """Whether the log may differ from the groups: clients whose group could not be stored are asked to join again."""
    leaders: dict[int, str] = field(default_factory=dict)
    """Leader of each generation, as members were answered. A generation that was lost with its coordinator may come again."""
    asked: dict[int, str] = field(default_factory=dict)
    """Requests that must be answered once."""

    former_requests: int = 0
    """Number of the last request to the previous coordinator."""
    synced: dict[int, int] = field(default_factory=dict)
    """Generations of SyncGroup requests."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        settings = GroupSettings(max_size=self.random.choice([2, 3, 100]), min_session_timeout_ms=1_000)
        self.world = World(settings, replicates_at_once=self.random.random() < 0.3)
        self.clients = [
            Client(self.world, "a"),
            Client(self.world, "b", knows_member_ids=False),
            Client(self.world, "c", instance_id="static"),
            Client(self.world, "d", instance_id="static", lives=1_000),
        ]
        self.commits: dict[int, int] = {}
        """Offset of each commit by the number of its write."""

    def run(self, steps: int = STEPS) -> None:
        """Run the steps, then let everything come to rest, and check the laws throughout."""
        for _ in range(steps):
            self.step()
            self.check()
        for _ in range(3):
            self.world.settle()
            self.world.advance(QUIET_MS)
        self.world.replicate_all()
        self.check()
        self.check_end()

    def step(self) -> None:
        """Do one thing."""
        client = self.random.choice(self.clients)
        steps = [self.go_on] * 10 + [self.join, self.leave] + [self.commit] * 2
        actions: list[Callable[[], None]] = [lambda act=act: act(client) for act in steps]
        actions += [self.wait] * 3 + [self.end_append] * 6 + [self.change_coordinator]
        self.random.choice(actions)()

    def go_on(self, client: Client) -> None:
        """Do what a client does next: join, fetch its assignment, beat; or wait for an answer."""
        answers = self.world.answers[client.request_id]
        if not client.request_id or (not client.member_id and answers):
            self.join(client)
        elif not answers:
            return
        elif self.asked.get(client.request_id) == "JoinGroup":
            self._note_join(client, client.joined())
            if client.generation >= 0:
                self.sync(client)
            else:
                self.join(client)
        elif (
            answers[0].error == ErrorCode.REBALANCE_IN_PROGRESS
            or self.heartbeat(client) == ErrorCode.REBALANCE_IN_PROGRESS
        ):
            self.join(client)

    # Requests

    def join(self, client: Client) -> None:
        """Join, sometimes with other protocols."""
        if self.random.random() < 0.2:
            client.protocols = (Protocol("range", str(self.random.random()).encode()),)
        first = client.world._requests + 1
        answer = client.join()
        for number in range(first, client.world._requests + 1):
            self.asked[number] = "JoinGroup"
        self.log(f"{client.name} joins as {client.member_id}: {answer}")
        self._note_join(client, answer)

    def _note_join(self, client: Client, answer: Joined | None) -> None:
        if answer is None:
            return
        if answer.error in RESETS:
            client.member_id, client.generation = "", -1
        if answer.error == ErrorCode.NONE and client.request_id > self.former_requests:
            is_leader = answer.leader == answer.member_id
            if is_leader and not answer.skip_assignment:
                known = self.leaders.setdefault(answer.generation, answer.leader)
                require(known == answer.leader, f"generation {answer.generation} has two leaders")
            require(bool(answer.members) == is_leader, "only the leader gets the members")

    def sync(self, client: Client) -> None:
        """Fetch an assignment; every client assigns, which only counts for the leader."""
        group = self.world.shard.groups.get(client.group_id)
        given = f"{client.generation} {client.member_id}".encode()
        answer = client.sync(dict.fromkeys(group.members if group is not None else {}, given))
        self.asked[client.request_id] = "SyncGroup"
        self.synced[client.request_id] = client.generation
        self.log(f"{client.name} syncs: {answer}")

    def heartbeat(self, client: Client) -> ErrorCode:
        """Beat."""
        error = client.heartbeat()
        self.log(f"{client.name} beats: {error.name}")
        if error in RESETS:
            client.member_id, client.generation = "", -1
        return error

    def leave(self, client: Client) -> None:
        """Leave, or come back as a client that was restarted."""
        if self.random.random() < 0.5 and client.member_id:
            self.log(f"{client.name} leaves")
            number = self.world.next_request()
            self.asked[number] = "LeaveGroup"
            self.world.ask("g", LeaveGroup(number, (Leaver(client.member_id, client.instance_id),)))
        client.member_id, client.generation = "", -1

    def commit(self, _: Client) -> None:
        """Commit the next offset without a group."""
        error = Client(self.world, "admin", group_id="simple").commit(self.next_offset)
        self.log(f"commit {self.next_offset}: {error.name}")
        if not error:
            self.commits[self.world.shard._writes] = self.next_offset
            self.next_offset += 1

    # Appends, time, coordinators

    def end_append(self) -> None:
        """End an append: the first ones in order, since the high watermark passes them so; a refused one is the last."""
        if not self.world.appends:
            return
        fate = self.random.random()
        if fate < 0.8:
            index = self.random.randrange(len(self.world.appends))
            self.log(f"append {index} is committed")
            self._committed(index)
        elif fate < 0.9:
            self.log("an append times out")
            self.has_failed_append = True
            self.world.end_append(0, ErrorCode.REQUEST_TIMED_OUT)
        elif self.world.is_last(self.world.appends[-1]):
            self.log("an append is refused")
            self.has_failed_append = True
            self.world.end_append(-1, ErrorCode.NOT_ENOUGH_REPLICAS)
            if "g" not in self.world.shard.groups:
                self._forget_generations()  # A group that could not be stored begins again with its first generation.

    def _committed(self, index: int) -> None:
        write = self.world.appends[index].write
        self.world.end_append(index)
        if write.is_applied and write.number in self.commits:
            self.acked = max(self.acked, self.commits[write.number])

    def wait(self) -> None:
        """Let time pass."""
        delay_ms = self.random.choice([10, 1_000, 3_000, 12_000, 61_000])
        self.log(f"wait {delay_ms}")
        self.world.advance(delay_ms)

    def change_coordinator(self) -> None:
        """Load another coordinator; a part of what is not committed is lost."""
        lost = self.random.randrange(4)
        self.log(f"another coordinator, {lost} records lost")
        self.world.reload(lost_records=lost)
        self.commits.clear()
        self._forget_generations()

    def _forget_generations(self) -> None:
        self.leaders.clear()
        self.synced.clear()
        self.former_requests = self.world._requests

    # Laws

    def check(self) -> None:
        """Check what holds at any time."""
        for number, answers in self.world.answers.items():
            require(len(answers) <= 1, f"request {number} is answered twice")
        committed = self.world.shard.offsets.get("simple", "orders", 0)
        visible = -1 if committed is None else committed.offset
        require(visible >= self.seen, f"offset {self.seen} was visible, now it is {visible}")
        require(visible >= self.acked, f"offset {self.acked} was acknowledged, and {visible} is visible")
        if visible > self.seen:
            self.seen = visible
            self._check_stored()
        self._check_assignments()

    def _check_stored(self) -> None:
        """Readers see nothing that is not below the high watermark."""
        durable = loaded(self.world.log[: self.world.high_watermark], self.world.settings, self.world.high_watermark)
        stored = durable.offsets.get("simple", "orders", 0)
        require(self.seen <= (-1 if stored is None else stored.offset), "a reader sees an offset that may be lost")

    def _check_assignments(self) -> None:
        for number, asked in self.synced.items():
            for answer in self.world.answers[number]:
                if isinstance(answer, Synced) and answer.assignment:
                    generation, _, giver = answer.assignment.decode().partition(" ")
                    require(int(generation) == asked, f"an assignment of generation {generation} was given in {asked}")
                    leader = self.leaders.get(asked)
                    require(leader in {None, giver}, f"{giver} assigned in generation {asked}, which {leader} leads")

    def check_end(self) -> None:
        """Check what holds once everything has come to rest."""
        for number, kind in self.asked.items():
            require(len(self.world.answers[number]) == 1, f"{kind} {number} is not answered")
        group = self.world.shard.groups.get("g")
        require(group is None or not group.members, "a member that is silent stays a member")
        again = loaded(self.world.log, self.world.settings, len(self.world.log))
        require(again.offsets.content() == self.world.shard.offsets.content(), "replay gives other offsets")
        replayed = again.groups.get("g")
        if not self.has_failed_append:
            require(_known(replayed) == _known(group), "replay gives another group")


def _known(group: Group | None) -> tuple[object, ...] | None:
    """Return what the log has of a group without members."""
    return None if group is None else (group.generation, group.protocol_type, group.protocol, group.state_since_ms)


def main() -> None:
    """Print the steps of one seed."""
    Schedule(int(sys.argv[1]), print).run()


if __name__ == "__main__":
    main()
