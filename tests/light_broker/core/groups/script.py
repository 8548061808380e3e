"""Conversations of clients with a coordinator as text: steps, `----`, and what they led to.

    client c static=one protocols=range,sticky session=10000 old    a client; `old` joins without a given out id, `static` has an instance id
    a joins / syncs / beats / leaves / comes back / commits 7 / supports range,sticky
    wait 3000              milliseconds
    appends wait           the following appends end with `appends end` or `appends fail NOT_COORDINATOR`
    another coordinator    loads the log

A leader assigns each member `to MEMBER`.
"""

from dataclasses import dataclass, field

from kafka_wire import ErrorCode
from light_broker.core.groups.effects import Answer, HeartbeatReceived, Joined, Left, Reply, Synced
from light_broker.core.groups.events import Heartbeat, LeaveGroup, Leaver
from light_broker.core.groups.records import CoordinatorRecord, GroupRecord
from light_broker.core.groups.states import Protocol
from tests.light_broker.core.groups.members import Client, subscription
from tests.light_broker.core.groups.world import World


@dataclass
class Conversation:
    """One script."""

    world: World = field(default_factory=World)
    clients: dict[str, Client] = field(default_factory=dict)
    asked: dict[int, str] = field(default_factory=dict)
    """Names of the clients by request."""

    def play(self, text: str) -> str:
        """Return the script with what its steps lead to now."""
        blocks = []
        for block in text.strip().split("\n\n"):
            steps, _, _ = block.partition("\n----")
            for line in steps.splitlines():
                if not line.startswith("#"):
                    self._step(line.split())
            happened, self.world.happened = self.world.happened, []
            blocks.append("\n".join([steps, "----", *(self._shown(event) for event in happened)]))
        return "\n\n".join(blocks) + "\n"

    def _step(self, words: list[str]) -> None:
        match words:
            case ["client", name, *options]:
                self._add_client(name, dict(option.partition("=")[::2] for option in options))
            case ["wait", delay_ms]:
                self.world.advance(int(delay_ms))
            case ["appends", "wait"]:
                self.world.replicates_at_once = False
            case ["appends", "end"]:
                self.world.settle()
            case ["appends", "fail", error]:
                self.world.settle(ErrorCode[error])
            case ["another", "coordinator"]:
                self.world.reload()
            case [name, *action]:
                self._act(self.clients[name], action)

    def _add_client(self, name: str, options: dict[str, str]) -> None:
        client = Client(self.world, name, instance_id=options.get("static"), knows_member_ids="old" not in options)
        client.protocols = _protocols(options.get("protocols", "range"))
        client.session_ms = int(options.get("session", client.session_ms))
        self.clients[name] = client

    def _act(self, client: Client, action: list[str]) -> None:
        world, first = self.world, self.world._requests + 1
        match action:
            case ["joins"]:
                for number in (first, first + 1):
                    self.asked[number] = client.name
                client.join(reason="asked to")
            case ["syncs"]:
                self.asked[first] = client.name
                if any(isinstance(answer, Joined) for answer in world.answers[client.request_id]):
                    client.joined()
                group = world.shard.groups.get(client.group_id)
                members = group.members if group is not None and group.leader == client.member_id else {}
                client.sync({member_id: f"to {member_id}".encode() for member_id in members})
            case ["beats"]:
                self.asked[first] = client.name
                number = world.next_request()
                world.ask(client.group_id, Heartbeat(number, client.member_id, client.instance_id, client.generation))
            case ["leaves"]:
                self.asked[first] = client.name
                leaver = Leaver(client.member_id, client.instance_id, "asked to")
                world.ask(client.group_id, LeaveGroup(world.next_request(), (leaver,)))
            case ["comes", "back"]:
                client.member_id, client.generation = "", -1
            case ["supports", protocols]:
                client.protocols = _protocols(protocols)
            case ["commits", offset]:
                error = client.commit(int(offset))
                world.happened.append(f"{client.name} commits: {error.name}")

    def _shown(self, happened: object) -> str:
        match happened:
            case Reply(request_id=request_id, answer=answer):
                return f"to {self.asked[request_id]}: {_answer(answer)}"
            case (_, timer, at_ms):
                return f"at {at_ms} ms: {timer!r}"
            case str():
                return happened
            case _:
                return f"log: {_record(happened)}"


def _protocols(names: str) -> tuple[Protocol, ...]:
    return tuple(Protocol(name, subscription("orders")) for name in names.split(","))


def _answer(answer: Answer) -> str:
    match answer:
        case Joined(error=ErrorCode.NONE):
            members = [member_id for member_id, _, _ in answer.members]
            role = f"leads {' '.join(members)}" if members else f"follows {answer.leader}"
            skipped = ", without assigning" if answer.skip_assignment else ""
            return f"joined generation {answer.generation} as {answer.member_id}, {answer.protocol}, {role}{skipped}"
        case Joined():
            return f"JoinGroup {answer.error.name} {answer.member_id}".rstrip()
        case Synced(error=ErrorCode.NONE):
            return f"assigned {answer.assignment.decode()!r}"
        case Synced() | HeartbeatReceived():
            return f"{'SyncGroup' if isinstance(answer, Synced) else 'Heartbeat'} {answer.error.name}"
        case Left():
            return f"left {answer.error.name} {[error.name for _, _, error in answer.members]}"


def _record(record: object) -> str:
    assert isinstance(record, CoordinatorRecord)
    if isinstance(record, GroupRecord):
        if record.value is None:
            return f"group {record.group_id} is deleted"
        members = [f"{member.id}: {member.assignment.decode()!r}" for member in record.value.members]
        return f"group {record.group_id} generation {record.value.generation} leader {record.value.leader} {members}"
    offset = "is deleted" if record.value is None else record.value.offset
    return f"offset {record.group_id} {record.topic}-{record.partition} {offset}"
