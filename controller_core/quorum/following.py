"""A follower's side of replication: which node it fetches from, and what it does with the response."""

from controller_core.quorum import joining, leadership, messages, ready, roles, rules, states, voters
from controller_core.quorum.batches import Batch
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node


def take_fetched(draft: ready.Draft, body: messages.FetchResponse) -> bool:
    """Append what was fetched, truncate, or start to fetch a snapshot; return whether the sender may be asked again at once."""
    handled = leadership.learn_from_response(draft, body.error, body.leadership)
    state = draft.state
    if handled is not None or not isinstance(state, states.Follower):
        return handled is not False
    if body.error is not messages.NONE:
        return False
    if body.diverging is not None:
        if not _truncate(draft, body):
            return False
    elif body.snapshot is not None:
        if not body.snapshot.is_valid:
            draft.violation(f"leader {draft.node.leader_id} named the invalid snapshot {body.snapshot}")
            return False
        if draft.node.log.snapshot(body.snapshot) is None:
            draft.set_state(changed(state, fetching=states.SnapshotFetch(body.snapshot)))
    else:
        appended_all = _append(draft, body.batches)
        _follow_high_watermark(draft, body.high_watermark)
        roles.count_as_fetch(draft)
        return appended_all
    roles.count_as_fetch(draft)
    return True


def _truncate(draft: ready.Draft, body: messages.FetchResponse) -> bool:
    """Remove the records from the point on at which the log leaves the leader's; committed records never."""
    assert body.diverging is not None, body
    end_offset = draft.node.log.divergence(body.diverging)
    if not body.diverging.is_valid or min(body.diverging.offset, end_offset) < draft.node.log.high_watermark:
        draft.violation(
            f"leader {draft.node.leader_id} asked for truncation to {body.diverging}; the high watermark is "
            f"{draft.node.log.high_watermark}"
        )
        return False
    draft.truncate(end_offset)
    return True


def _append(draft: ready.Draft, batches: tuple[Batch, ...]) -> bool:
    """Append the batches up to the first that does not continue the log or is too large for it; return whether there is none."""
    usable: list[Batch] = []
    violation = None
    for batch in batches:
        violation = _refusal(draft.node, usable[-1] if usable else None, batch)
        if violation is not None:
            draft.violation(violation)
            break
        usable.append(batch)
    if usable:
        draft.append(tuple(usable))
        if draft.node.settings.can_become_voter or draft.node.is_voter:
            draft.flush_log()
    return violation is None


def _refusal(node: Node, last: Batch | None, batch: Batch) -> str | None:
    """Return why a fetched batch is not appended after `last`, or at the end of the log; None if it is."""
    end_offset, epoch = (node.log.end_offset, node.log.last_epoch) if last is None else (last.end_offset, last.epoch)
    limit = node.settings.batch_max_bytes
    if batch.base_offset != end_offset or not epoch <= batch.epoch <= node.epoch:
        return f"a fetched batch at {batch.base_offset} of epoch {batch.epoch} does not continue the log"
    if len(batch.payload) > limit:
        return f"a fetched batch at {batch.base_offset} has {len(batch.payload)} bytes; the log takes at most {limit}"
    return None


def _follow_high_watermark(draft: ready.Draft, leader_high_watermark: int) -> None:
    """Raise the high watermark to the leader's, as far as the log goes."""
    high_watermark = min(leader_high_watermark, draft.node.log.end_offset)
    if leader_high_watermark != messages.UNKNOWN and high_watermark > (draft.node.high_watermark or 0):
        draft.commit(high_watermark)


def may_fetch(node: Node) -> bool:
    """Whether a node may send a Fetch. The leader takes all before the offset as on disk, so a flush under way has to end first."""
    if node.installing is not None:
        return False
    must_flush = node.settings.can_become_voter or node.is_voter
    return not must_flush or node.log.flushed_offset == node.log.end_offset


def poll_follower(draft: ready.Draft, state: states.Follower) -> int:
    """Fetch from the leader; a voter starts an election when no fetch has succeeded for the fetch timeout."""
    node = draft.node
    if node.shutdown_due_ms is not None:
        return states.NEVER
    due_ms = state.fetch_due_ms if node.may_campaign and node.installing is None else states.NEVER
    if due_ms <= draft.now_ms:
        roles.campaign(draft)
        return draft.now_ms
    leader = leader_destination(node, state)
    if leader is not None:
        is_used, joining_due_ms = joining.poll(draft, state, leader)
        due_ms = min(due_ms, joining_due_ms)
        if is_used:
            return due_ms
    return min(due_ms, _poll_fetch(draft, state, leader)) if may_fetch(draft.node) else due_ms


def _poll_fetch(draft: ready.Draft, state: states.Follower, leader: rules.Destination | None) -> int:
    """Fetch from the leader; while it fails, from any known node, to find out whether there is another leader."""
    connections = draft.node.connections
    if leader is None or connections.is_backing_off(leader.id, draft.now_ms):
        return fetch_from_any(draft)
    if connections.has_timed_out(leader.id, draft.now_ms):
        draft.node = changed(draft.node, connections=connections.answered(leader.id))
        return fetch_from_any(draft)
    answer_due_ms = connections.next_answer_due(draft.now_ms)
    if answer_due_ms != states.NEVER:
        return answer_due_ms
    fetching = state.fetching
    draft.send(leader, fetch_request(draft.node) if fetching is None else snapshot_request(draft.node, fetching))
    return draft.node.connections.ready_at(leader.id, draft.now_ms)


def poll_unattached(draft: ready.Draft, state: states.Unattached) -> int:
    """Search for the leader; a voter starts an election at the end of its election timeout."""
    node = draft.node
    if node.may_campaign and node.shutdown_due_ms is not None:
        return states.NEVER
    due_ms = states.NEVER
    if node.may_campaign and node.installing is None:
        if state.election_due_ms == states.NEVER:
            # It became a voter while it did not know a leader, by a snapshot that it had fetched before.
            state = changed(state, election_due_ms=roles.election_due_ms(draft))
            draft.set_state(state)
        if state.election_due_ms <= draft.now_ms:
            roles.campaign(draft)
            return draft.now_ms
        due_ms = state.election_due_ms
    return min(due_ms, fetch_from_any(draft)) if may_fetch(draft.node) else due_ms


def fetch_from_any(draft: ready.Draft) -> int:
    """Send a Fetch to a random bootstrap server, unless one waits for its answer; return when the next one may be sent.

    Two Fetches at a time could append the same records twice.
    """
    node, now_ms = draft.node, draft.now_ms
    answer_due_ms = node.connections.next_answer_due(now_ms)
    servers = [server for server in node.settings.bootstrap if server.id != node.id]
    if answer_due_ms != states.NEVER or not servers:
        return answer_due_ms
    first = draft.draw(len(servers))
    for server in (*servers[first:], *servers[:first]):
        if node.connections.is_ready(server.id, now_ms):
            draft.send(server, fetch_request(draft.node))
            return draft.node.connections.ready_at(server.id, now_ms)
    return min(node.connections.ready_at(server.id, now_ms) for server in servers)


def fetch_request(node: Node) -> messages.FetchRequest:
    """Return the Fetch from the end of the log."""
    settings = node.settings
    high_watermark = messages.UNKNOWN if node.high_watermark is None else node.high_watermark
    return messages.FetchRequest(
        settings.cluster_id,
        node.epoch,
        node.key,
        node.log.end,
        high_watermark,
        settings.fetch_max_wait_ms,
        settings.fetch_max_bytes,
    )


def snapshot_request(node: Node, fetching: states.SnapshotFetch) -> messages.FetchSnapshotRequest:
    """Return the request for the next bytes of a snapshot."""
    settings = node.settings
    max_bytes = settings.fetch_snapshot_max_bytes
    return messages.FetchSnapshotRequest(
        settings.cluster_id, node.epoch, node.key, fetching.id, fetching.position, max_bytes
    )


def leader_destination(node: Node, state: states.Follower) -> rules.Destination | None:
    """Return where to reach the leader; None if its endpoint on the quorum's listener is not known."""
    endpoint = voters.endpoint_of(state.leader_endpoints, node.settings.listener)
    return None if endpoint is None else rules.Destination(state.leader_id, endpoint.host, endpoint.port)
