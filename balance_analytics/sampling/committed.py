"""Committed offsets of consumer groups, added up by partition: what a bytes-out estimate is made of (ListGroups, OffsetFetch).

Each coordinator lists its groups and is asked for their offsets, some at a time. A sum that lacks a group would
look like consumers that went back: so one group that cannot be asked makes every sum of the look unknown.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from balance_analytics.model.samples import UNKNOWN, Ints, Longs
from balance_analytics.sampling.asking import AskedBroker, AskFailed, decoded
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.layout import Layout
from balance_analytics.sampling.left_out import LeftOut, Reason, What, reason_of
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

MAX_GROUPS = 5_000
"""Asked in one look; a cluster with more keeps its committed offsets unknown rather than its brokers busy."""
GROUPS_PER_REQUEST = 20
"""Groups that read a thousand partitions each then answer in half a megabyte; over MAX_DECODED_BYTES none is believed."""
PROTOCOL_TYPES = frozenset({"consumer", ""})
"""Of groups that may commit offsets of topics; "" are those without members, or that were never joined."""
OFFSETS_TOPIC = "__consumer_offsets"
"""The leader of a partition of it coordinates the groups whose offsets are there (GroupCoordinator.partitionFor)."""
FIRST_VERSION, LAST_VERSION = 8, 9
"""Of OffsetFetch: several groups in one request (KIP-709) since 8; since 10 topics have their ids alone."""


@dataclass(slots=True)
class CommittedSums:
    """Sums so far, and why they are not whole."""

    sums: Longs
    groups: Ints
    failures: list[tuple[Reason, str]] = field(default_factory=list)

    def add(self, layout: Layout, topics: Iterable[Body]) -> None:
        """Add one group's committed offsets; -1 is none (OffsetFetchResponse.INVALID_OFFSET)."""
        found = [(one["name"], part) for one in topics for part in one["partitions"]]
        for _, part in found:
            if part["error_code"] != ErrorCode.NONE:
                code = part["error_code"]
                self.failures.append((reason_of(code), f"committed offsets: {ErrorCode.of(code).name}"))
                return
        partition = np.array([part["partition_index"] for _, part in found], np.int32)
        names = tuple(name for name, _ in found)
        rows = layout.rows.find(names, np.ones(len(names), np.int64), partition)
        offset = np.array([part["committed_offset"] for _, part in found], np.int64)
        good = (rows >= 0) & (offset >= 0)
        np.add.at(self.sums, rows[good], offset[good])
        np.add.at(self.groups, rows[good], 1)


async def ask_committed(link: ClusterLink, layout: Layout, left_out: LeftOut, *, deadline: float) -> None:
    """Fill the sums of all partitions, or none of them."""
    total = CommittedSums(np.zeros(len(layout), np.int64), np.zeros(len(layout), np.int32))
    brokers = _coordinators(link, layout, total)
    listed = await asyncio.gather(*(_groups(broker, total, deadline) for broker in brokers))
    # A group whose coordinator changes just now may be told by both, and must not be added twice.
    asked_of = {group: at for at, groups in enumerate(listed) for group in groups}
    if len(asked_of) > MAX_GROUPS:
        words = f"{len(asked_of)} consumer groups; at most {MAX_GROUPS} are asked for committed offsets"
        total.failures.append((Reason.TOO_MANY_GROUPS, words))
    if not total.failures:
        groups_of = [[group for group, one in asked_of.items() if one == at] for at in range(len(brokers))]
        await asyncio.gather(
            *(_ask(broker, groups, total, layout, deadline) for broker, groups in zip(brokers, groups_of, strict=True))
        )
    if total.failures:
        reason, words = total.failures[0]
        left_out.add(What.COMMITTED, reason, len(layout), words)
        layout.committed_offset_sum[:] = UNKNOWN
        return
    layout.committed_offset_sum[:] = total.sums
    layout.committed_groups[:] = total.groups


def _coordinators(link: ClusterLink, layout: Layout, total: CommittedSums) -> list[AskedBroker]:
    """Return who knows of groups: the leaders of the offsets topic, or whoever holds replicas where that is not shown."""
    if OFFSETS_TOPIC in layout.topics:
        at = layout.topics.index(OFFSETS_TOPIC)
        ids = np.unique(layout.leader[layout.first_row[at] : layout.first_row[at + 1]])
    else:
        ids = np.unique(layout.replicas[layout.replicas >= 0])
    found = []
    for broker_id in ids.tolist():
        broker = link.broker(broker_id)
        if broker is not None:
            found.append(broker)
        elif broker_id < 0:
            total.failures.append((Reason.NO_LEADER, f"a partition of {OFFSETS_TOPIC} has no leader"))
        else:
            total.failures.append((Reason.CONNECTION, f"broker {broker_id}, which knows of groups, is not there"))
    return found


async def _groups(broker: AskedBroker, total: CommittedSums, deadline: float) -> list[str]:
    try:
        body = await broker.ask(ApiKey.LIST_GROUPS, lambda _: {}, decoded(ApiKey.LIST_GROUPS), deadline=deadline)
    except AskFailed as why:
        total.failures.append((why.reason, str(why)))
        return []
    if body["error_code"] != ErrorCode.NONE:
        error = ErrorCode.of(body["error_code"])
        total.failures.append((reason_of(error), f"{broker.name} lists no groups: {error.name}"))
    return [one["group_id"] for one in body["groups"] if one["protocol_type"] in PROTOCOL_TYPES]


async def _ask(
    broker: AskedBroker, groups: Sequence[str], total: CommittedSums, layout: Layout, deadline: float
) -> None:
    for begin in range(0, len(groups), GROUPS_PER_REQUEST):
        chunk = groups[begin : begin + GROUPS_PER_REQUEST]
        try:
            body = await broker.ask(
                ApiKey.OFFSET_FETCH,
                lambda _, chunk=chunk: {"groups": [{"group_id": name, "topics": None} for name in chunk]},  # type: ignore[misc]
                decoded(ApiKey.OFFSET_FETCH),
                deadline=deadline,
                lowest=FIRST_VERSION,
                highest=LAST_VERSION,
            )
        except AskFailed as why:
            total.failures.append((why.reason, str(why)))
            return
        for group in body["groups"]:
            if group["error_code"] != ErrorCode.NONE:
                error = ErrorCode.of(group["error_code"])
                total.failures.append((reason_of(error), f"group {group['group_id']}: {error.name}"))
                return
            total.add(layout, group["topics"])
