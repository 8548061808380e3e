"""Golden scripts of the quorum: commands in, the conversation of the nodes out, over the simulator without faults.

A block has comments (`#`), commands, a line of dashes and what happened: states that changed, requests with their answers, and changes of
logs. Fetches are left out unless they are answered with an error or a change of direction. All invariants of the simulator hold as well.
`rules` are Kafka 4's by default; a list has the rules of node 1, node 2 and so on.

    nodes voters=3 [controllers=1] [brokers=1] [kraft=1] [rules=3] [rules=4,3,3]
    run 3000          simulated milliseconds
    append | kill 1 | start 1 | cut 1 | heal | shutdown 1 | resign 1 | add 4 | remove 1 | upgrade | snapshot 1 | show
    forget            leave out what has happened so far in this block
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from controller_core.quorum import messages
from controller_core.quorum import ready as results
from controller_core.quorum.inputs import Resign, Shutdown
from controller_core.quorum.node import Node
from controller_core.quorum.rules import Rules
from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, Resigned, State, Unattached
from kafka_wire import ErrorCode
from tests.controller_core.decisions.script import NOTHING, parse
from tests.sim.checks import Checks
from tests.sim.cluster import Cluster, key_of
from tests.sim.disk import Chain
from tests.sim.host import Host
from tests.sim.network import Weather
from tests.sim.scenarios import CALM

QUIET = replace(CALM, weather=Weather(delay_ms=0), flush_ms=0, append_every_ms=1000, fetch_snapshot_max_bytes=24)
"""A cluster without faults, in which each message takes 1 ms and a flush none."""

RULES = {"3": Rules.KAFKA_3, "4": Rules.KAFKA_4}

SEED = 4
"""Any: election timeouts follow from it."""


class Recorder(Checks):
    """The simulator's checks, which also write down what happens."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.lines: list[str] = []

    def started(self, host: Host, node: Node) -> None:
        super().started(host, node)
        self.lines.append(f"{host.id} starts as {_state(node.state)}")

    def stepped(self, host: Host, before: Node, ready: results.Ready) -> None:
        super().stepped(host, before, ready)
        if _state(before.state) != _state(ready.node.state):
            self.lines.append(f"{host.id} becomes {_state(ready.node.state)}")
        for operation in ready.log:
            self.lines.append(f"{host.id} {_operation(operation)}")
        for notice in ready.notices:
            if isinstance(notice, results.Committed) and isinstance(ready.node.state, Leader | Resigned):
                self.lines.append(f"{host.id} commits to {notice.high_watermark}")
            elif isinstance(notice, results.Stopped):
                self.lines.append(f"{host.id} stops{' late' if notice.timed_out else ''}")
        for reply in ready.replies:
            text = _answer(reply.body)
            if text:
                self.lines.append(f"{host.id} answers {text}")

    def sends(self, host: Host, outgoing: results.Outgoing) -> None:
        super().sends(host, outgoing)
        text = _request(outgoing.body)
        line = f"{host.id} asks {self._cluster.id_of(outgoing.destination)} {text}"
        # A request that is tried again is listed once in a block.
        if text and line not in self.lines:
            self.lines.append(line)

    def installed(self, host: Host, snapshot: object) -> None:
        super().installed(host, snapshot)
        self.lines.append(f"{host.id} installs a snapshot: its log starts at {host.disk.start_offset}")

    def appended(self, host: Host, batch: object) -> Chain:
        return super().appended(host, batch)


def _state(state: State) -> str:
    text = f"{type(state).__name__} in epoch {state.epoch}"
    match state:
        case Unattached(voted=voted) | Prospective(voted=voted) if voted is not None:
            return f"{text}, voted {voted.id}"
        case Follower(leader_id=leader_id):
            return f"{text} of {leader_id}"
        case Candidate(backoff_until_ms=until) if until is not None:
            return f"{text}, backing off"
        case _:
            return text


def _operation(operation: results.LogOperation) -> str:
    match operation:
        case results.Appended(batches=batches):
            return "appends " + ", ".join(
                f"{batch.base_offset}-{batch.last_offset}@{batch.epoch}"
                + "".join(f" {type(record).__name__}" for record in batch.control)
                for batch in batches
            )
        case results.Truncated(end_offset=end_offset):
            return f"truncates to {end_offset}"
        case results.SnapshotChunk(position=position, data=data, is_last=is_last):
            return f"writes snapshot bytes {position}-{position + len(data)}{', the last' if is_last else ''}"


def _request(body: messages.RequestBody) -> str:
    match body:
        case messages.VoteRequest(pre_vote=pre_vote, epoch=epoch, last=last):
            return f"for a {'pre-vote' if pre_vote else 'vote'} in epoch {epoch}, log {last.offset}@{last.epoch}"
        case messages.BeginQuorumEpochRequest(epoch=epoch):
            return f"to follow it in epoch {epoch}"
        case messages.EndQuorumEpochRequest(epoch=epoch, successors=successors):
            return f"to end epoch {epoch}, successors {[successor.id for successor in successors]}"
        case messages.FetchRequest():
            return ""
        case messages.FetchSnapshotRequest(snapshot=snapshot, position=position):
            return f"for snapshot {snapshot.offset}@{snapshot.epoch} from byte {position}"
        case _:
            return type(body).__name__.removesuffix("Request")


def _answer(body: object) -> str:
    error = getattr(body, "error", messages.NONE)
    if isinstance(body, messages.FetchResponse) and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return ""
    if error is not messages.NONE:
        return f"{type(body).__name__.removesuffix('Response')} with {error.name}"
    match body:
        case messages.VoteResponse(granted=granted):
            return "yes" if granted else "no"
        case messages.FetchResponse(diverging=diverging) if diverging is not None:
            return f"Fetch: truncate to {diverging.offset}@{diverging.epoch}"
        case messages.FetchResponse(snapshot=snapshot) if snapshot is not None:
            return f"Fetch: fetch snapshot {snapshot.offset}@{snapshot.epoch}"
        case messages.DescribeQuorumResponse() as found:
            voters = [f"{voter.key.id}:{voter.end_offset}" for voter in found.voters]
            observers = [f"{observer.key.id}:{observer.end_offset}" for observer in found.observers]
            return f"Describe: high watermark {found.high_watermark}, voters {voters}, observers {observers}"
        case messages.AddRaftVoterResponse() | messages.RemoveRaftVoterResponse() | messages.UpdateRaftVoterResponse():
            return f"{type(body).__name__.removesuffix('Response')}: done"
        case _:
            return ""


class Play:
    """A script in play."""

    def __init__(self) -> None:
        self.cluster = Cluster(SEED, QUIET)
        self.recorder = Recorder(self.cluster)

    def nodes(self, *words: str) -> None:
        """Start a cluster."""
        wishes = dict(word.split("=") for word in words)
        numbers = {key: int(value) for key, value in wishes.items() if key not in {"kraft", "rules"}}
        *first, last = [RULES[name] for name in wishes.get("rules", "4").split(",")]
        rules = (last, *first)  # the cluster has them by the rest of the id
        swarm = replace(QUIET, **numbers, kraft_version=int(wishes.get("kraft", "0")), rules=rules)
        self.cluster = Cluster(SEED, swarm)
        self.cluster.checks = self.recorder = Recorder(self.cluster)
        self.cluster.faults.is_on = False
        self.cluster.start_all()

    def run(self, duration_ms: str) -> None:
        """Let time pass."""
        scheduler = self.cluster.scheduler
        scheduler.run_until(scheduler.now_ms + int(duration_ms))

    def append(self) -> None:
        """Append a record at the leader."""
        self.cluster.append()

    def host(self, node_id: str) -> Host:
        """Return a node's host."""
        return self.cluster.hosts[int(node_id)]

    def cut(self, *ids: str) -> None:
        """Cut nodes off from all others."""
        some = {int(node_id) for node_id in ids}
        self.cluster.network.isolate(some, set(self.cluster.hosts) - some, both_ways=True)

    def resign(self, node_id: str) -> None:
        """Let a leader resign."""
        host = self.host(node_id)
        assert host.node is not None, node_id
        host.handle(Resign(host.node.epoch))

    def ask_leader(self, body: messages.RequestBody) -> None:
        """Send a tool's request to the leader."""
        host = self.cluster.leader()
        assert host is not None, body
        host.ask(body, lambda _reply: None)

    def add(self, node_id: str) -> None:
        """Ask for a new voter."""
        settings = self.host(node_id).settings
        self.ask_leader(messages.AddRaftVoterRequest(None, 1000, settings.key, settings.endpoints))

    def show(self) -> None:
        """Write down all states, and the leader's view of the replicas."""
        for host in self.cluster.hosts.values():
            node = host.node
            text = (
                "is down"
                if node is None
                else f"is {_state(node.state)}, log {node.log.end_offset}@{node.log.last_epoch}"
            )
            self.recorder.lines.append(f"{host.id} {text}")
        if self.cluster.leader() is not None:
            self.ask_leader(messages.DescribeQuorumRequest())


COMMANDS: Mapping[str, Callable[..., None]] = {
    "nodes": Play.nodes,
    "run": Play.run,
    "append": Play.append,
    "kill": lambda play, node_id: play.host(node_id).crash(),
    "start": lambda play, node_id: play.host(node_id).start(),
    "cut": Play.cut,
    "heal": lambda play: play.cluster.network.heal(),
    "shutdown": lambda play, node_id: play.host(node_id).handle(Shutdown(5000)),
    "resign": Play.resign,
    "add": Play.add,
    "remove": lambda play, node_id: play.ask_leader(messages.RemoveRaftVoterRequest(None, key_of(int(node_id)))),
    "upgrade": lambda play: play.cluster.upgrade(),
    "snapshot": lambda play, node_id: play.host(node_id).make_snapshot(),
    "show": Play.show,
    "forget": lambda play: play.recorder.lines.clear(),
}


def play(text: str) -> str:
    """Run a script's commands; return the script with the current results."""
    running, blocks = Play(), parse(text)
    for block in blocks:
        running.recorder.lines.clear()
        for command in block.commands:
            verb, *words = command.split()
            COMMANDS[verb](running, *words)
        block.output = running.recorder.lines.copy() or [NOTHING]
    return "\n\n".join(block.text() for block in blocks) + "\n"
