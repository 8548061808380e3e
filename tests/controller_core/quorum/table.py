"""The table of every state and message: how a node in each state answers each message, and what it becomes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from controller_core.quorum import messages
from controller_core.quorum.batches import Batch, Position
from controller_core.quorum.inputs import (
    Append,
    Flushed,
    LogCleaned,
    Resign,
    Response,
    Shutdown,
    SnapshotCreated,
    UpgradeKRaftVersion,
)
from controller_core.quorum.log_view import Snapshot
from controller_core.quorum.node import Node
from controller_core.quorum.ready import AppendResult, Ready, UpgradeResult, Violation
from controller_core.quorum.rules import Rules
from controller_core.quorum.states import Candidate, Follower, Prospective, Unattached
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import ReplicaKey, VersionRange
from tests.controller_core.quorum import nodes
from tests.controller_core.quorum.nodes import EPOCH, LEADER, NOW_MS, OTHER, ask, begin, endpoints, fetch, key, vote

SAME, LONGER, SHORTER = Position(3, 4), Position(4, 4), Position(2, 4)
"""Logs of candidates, compared with that of the node; a leader's own is one record longer."""

STATES: Mapping[str, Callable[[], Node]] = {
    "Unattached": nodes.unattached,
    "Unattached, voted for 3": lambda: nodes.unattached(voted=OTHER),
    "Unattached observer": nodes.observer,
    "Prospective": nodes.prospective,
    "Candidate": nodes.candidate,
    "Candidate, Kafka 3": lambda: nodes.candidate(own=nodes.settings(rules=Rules.KAFKA_3)),
    "Follower of 2": nodes.follower,
    "Follower of 2 that has fetched": lambda: nodes.follower(has_fetched=True),
    "Leader": nodes.leader,
    "Leader that has committed": nodes.committed,
    "Resigned": nodes.resigned,
}

MESSAGES: Mapping[str, Callable[[Node], Ready]] = {
    "vote, lower epoch": lambda node: ask(node, vote(3, EPOCH - 1, Position(3, 3))),
    "vote of 3, same epoch, same log": lambda node: ask(node, vote(3, EPOCH, SAME)),
    "vote of 2, same epoch, same log": lambda node: ask(node, vote(2, EPOCH, SAME)),
    "vote, same epoch, shorter log": lambda node: ask(node, vote(3, EPOCH, SHORTER)),
    "vote, higher epoch, longer log": lambda node: ask(node, vote(3, EPOCH + 2, Position(9, EPOCH))),
    "vote, higher epoch, shorter log": lambda node: ask(node, vote(3, EPOCH + 2, SHORTER)),
    "vote for another directory": lambda node: ask(node, replace(vote(3, EPOCH, SAME), voter=key(9))),
    "vote of an unknown node": lambda node: ask(node, vote(8, EPOCH, SAME)),
    "vote in another cluster": lambda node: ask(node, replace(vote(3, EPOCH, SAME), cluster_id="other")),
    "vote, epoch of the log not lower": lambda node: ask(node, vote(3, EPOCH, Position(3, EPOCH))),
    "pre-vote, same epoch, same log": lambda node: ask(node, vote(3, EPOCH, SAME, pre_vote=True)),
    "pre-vote, same epoch, shorter log": lambda node: ask(node, vote(3, EPOCH, SHORTER, pre_vote=True)),
    "pre-vote, higher epoch, longer log": lambda node: ask(node, vote(3, EPOCH + 2, Position(9, EPOCH), pre_vote=True)),
    "begin of 2, lower epoch": lambda node: ask(node, begin(LEADER, EPOCH - 1)),
    "begin of 2, same epoch": lambda node: ask(node, begin(LEADER, EPOCH)),
    "begin of 3, higher epoch": lambda node: ask(node, begin(OTHER, EPOCH + 1)),
    "begin of 8 without endpoints": lambda node: ask(node, replace(begin(8, EPOCH + 1), endpoints=())),
    "begin for another directory": lambda node: ask(node, replace(begin(LEADER, EPOCH), voter=key(9))),
    "end of 2, same epoch, first successor": lambda node: ask(
        node, messages.EndQuorumEpochRequest(nodes.CLUSTER, EPOCH, LEADER, (key(1), key(3)), endpoints(2))
    ),
    "end of 2, same epoch, last successor": lambda node: ask(
        node, messages.EndQuorumEpochRequest(nodes.CLUSTER, EPOCH, LEADER, (key(3), key(1)), endpoints(2))
    ),
    "fetch, lower epoch": lambda node: ask(node, fetch(OTHER, 3, 4, epoch=EPOCH - 1)),
    "fetch, higher epoch": lambda node: ask(node, fetch(OTHER, 3, 4, epoch=EPOCH + 1)),
    "fetch, with records": lambda node: ask(node, fetch(OTHER, 3, 4)),
    "fetch, at the end": lambda node: ask(node, fetch(OTHER, 4, EPOCH, high_watermark=4)),
    "fetch, diverging": lambda node: ask(node, fetch(OTHER, 3, 3)),
    "fetch, malformed": lambda node: ask(node, fetch(OTHER, 3, EPOCH + 1)),
    "fetch of this node's id": lambda node: ask(node, fetch(1, 3, 4)),
    "fetch of a consumer": lambda node: ask(node, replace(fetch(OTHER, 3, 4), replica=ReplicaKey(-1))),
    "fetch of a missing snapshot": lambda node: ask(
        node, messages.FetchSnapshotRequest(nodes.CLUSTER, EPOCH, key(3), Position(2, 4), 0)
    ),
    "fetch of a snapshot": lambda node: ask(
        replace(node, log=node.log.add_snapshot(Snapshot(Position(2, 4), 10))),
        messages.FetchSnapshotRequest(nodes.CLUSTER, EPOCH, key(3), Position(2, 4), 4),
    ),
    "fetch of a snapshot behind its end": lambda node: ask(
        replace(node, log=node.log.add_snapshot(Snapshot(Position(2, 4), 10))),
        messages.FetchSnapshotRequest(nodes.CLUSTER, EPOCH, key(3), Position(2, 4), 10),
    ),
    "add voter 4": lambda node: ask(node, messages.AddRaftVoterRequest(None, 1000, key(4), endpoints(4))),
    "add voter 3": lambda node: ask(node, messages.AddRaftVoterRequest(None, 1000, key(3), endpoints(3))),
    "add voter without endpoints": lambda node: ask(node, messages.AddRaftVoterRequest(None, 1000, key(4), ())),
    "remove voter 3": lambda node: ask(node, messages.RemoveRaftVoterRequest(None, key(3))),
    "remove voter 8": lambda node: ask(node, messages.RemoveRaftVoterRequest(None, key(8))),
    "remove voter 1": lambda node: ask(node, messages.RemoveRaftVoterRequest(None, key(1))),
    "update voter 3": lambda node: ask(
        node, messages.UpdateRaftVoterRequest(None, EPOCH, key(3), endpoints(7), VersionRange(0, 1))
    ),
    "update voter 3, lower epoch": lambda node: ask(
        node, messages.UpdateRaftVoterRequest(None, EPOCH - 1, key(3), endpoints(7), VersionRange(0, 1))
    ),
    "describe": lambda node: ask(node, messages.DescribeQuorumRequest()),
    "versions": lambda node: ask(node, messages.ApiVersionsRequest()),
    "append": lambda node: step(node, Append(77, EPOCH, b"data", 2), NOW_MS),
    "append, lower epoch": lambda node: step(node, Append(77, EPOCH - 1, b"data", 2), NOW_MS),
    "upgrade to kraft.version 1": lambda node: step(node, UpgradeKRaftVersion(77, EPOCH, 1), NOW_MS),
    "upgrade to kraft.version 0": lambda node: step(node, UpgradeKRaftVersion(77, EPOCH, 0), NOW_MS),
    "late flush": lambda node: step(node, Flushed(99), NOW_MS),
    "snapshot made": lambda node: step(node, SnapshotCreated(Position(2, 4), 10), NOW_MS),
    "log cleaned": lambda node: step(node, LogCleaned(0), NOW_MS),
    "resign": lambda node: step(node, Resign(EPOCH), NOW_MS),
    "shutdown": lambda node: step(node, Shutdown(1000), NOW_MS),
    "late response": lambda node: step(
        node, Response(LEADER, 999, messages.FetchResponse(batches=(Batch(3, 3, EPOCH),))), NOW_MS
    ),
    "4 s without messages": lambda node: tick(node, NOW_MS + 4000),
}


def describe(node: Node) -> str:
    """Describe a state in a few words."""
    state = node.state
    text = f"{type(state).__name__} {state.epoch}"
    match state:
        case Unattached(voted=voted) | Prospective(voted=voted) if voted is not None:
            text += f" voted {voted.id}"
        case Follower(leader_id=leader_id):
            text += f" of {leader_id}"
        case Candidate(backoff_until_ms=until) if until is not None:
            text += " backing off"
    return f"{text} stopped" if node.is_stopped else text


def outcome(before: Node, ready: Ready) -> str:
    """Describe the result of a message: the answer, the new state, the log, what is asked of others."""
    answers = [_answer(reply.body) for reply in ready.replies] or ["later" if _waits(before, ready.node) else ""]
    parts = [part for part in answers if part]
    if describe(before) != describe(ready.node):
        parts.append(f"-> {describe(ready.node)}")
    parts += [f"{type(operation).__name__.lower()}" for operation in ready.log]
    parts += sorted({type(request.body).__name__.removesuffix("Request") + "?" for request in ready.requests})
    parts += [f"violation: {notice.reason}" for notice in ready.notices if isinstance(notice, Violation)]
    return ", ".join(parts) or "nothing"


def _waits(before: Node, after: Node) -> bool:
    return any(
        getattr(after.state, name, ()) != getattr(before.state, name, ()) for name in ("delayed", "change")
    ) and type(before.state) is type(after.state)


def _answer(body: object) -> str:
    error = getattr(body, "error", messages.NONE)
    if error is not messages.NONE:
        return str(error.name)
    match body:
        case messages.VoteResponse(granted=granted):
            return "granted" if granted else "not granted"
        case messages.FetchResponse(diverging=diverging, read=read):
            return (
                f"truncate to {diverging}"
                if diverging
                else f"records {read.offset}-{read.end_offset}"
                if read
                else "empty"
            )
        case AppendResult(base_offset=offset):
            return f"at {offset}"
        case UpgradeResult():
            return "done"
        case messages.FetchSnapshotResponse(read_bytes=size):
            return f"{size} bytes"
        case _:
            return "ok"


def render() -> str:
    """Write the table: a section for each message, with the states of each outcome."""
    lines = []
    for title, message in MESSAGES.items():
        lines.append(title)
        outcomes: dict[str, list[str]] = {}
        for name, make in STATES.items():
            node = make()
            outcomes.setdefault(outcome(node, message(node)), []).append(name)
        lines += [f"    {result} <- {'; '.join(names)}" for result, names in outcomes.items()]
    return "\n".join(lines) + "\n"
