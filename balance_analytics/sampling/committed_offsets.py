"""Committed offsets of consumer groups, summed by partition, to estimate bytes out (ListGroups, OffsetFetch).

Each coordinator lists its groups and returns their offsets, some groups at a time. A sum without one of the groups would be too low, as if
consumers had gone back. So one group that cannot be read makes every sum of the sample unknown.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from balance_analytics.model.samples import UNKNOWN, Ints, Longs
from balance_analytics.sampling.missing_data import DataKind, MissingData, Reason, reason_of, reason_of_failure
from balance_analytics.sampling.sample_builder import SampleBuilder
from balance_analytics.sampling.settings import MAX_DECODED_BYTES
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Node, RequestFailed
from kafka_wire.net.cluster import REQUEST_ATTEMPTS, ClusterClient
from kafka_wire.net.connection import body_decoder

MAX_GROUPS = 5_000
"""Limit of one sample. In a cluster with more groups committed offsets are unknown, as reading them would keep the brokers busy."""
GROUPS_PER_REQUEST = 20
"""With a thousand partitions per group, a response has half a megabyte: below MAX_DECODED_BYTES."""
PROTOCOL_TYPES = frozenset({"consumer", ""})
"""Of groups that may commit offsets of topics; "" are those without members."""
OFFSETS_TOPIC = "__consumer_offsets"
"""The leader of each of its partitions coordinates the groups whose offsets are in it (GroupCoordinator.partitionFor)."""
VERSIONS = (8, 9)
"""Of OffsetFetch: several groups in one request (KIP-709) since 8; since 10 topics have only ids."""


@dataclass(slots=True)
class CommittedSums:
    """Sums by row, the number of groups in each, and failures that make the sums incomplete."""

    sums: Longs
    groups: Ints
    failures: list[tuple[Reason, str]] = field(default_factory=list)

    def add(self, builder: SampleBuilder, topics: Iterable[Body]) -> None:
        """Add one group's committed offsets; -1 means none (OffsetFetchResponse.INVALID_OFFSET)."""
        found = [(topic["name"], part) for topic in topics for part in topic["partitions"]]
        for _, part in found:
            if part["error_code"] != ErrorCode.NONE:
                code = part["error_code"]
                self.failures.append((reason_of(code), f"committed offsets: {ErrorCode.of(code).name}"))
                return
        partition = np.array([part["partition_index"] for _, part in found], np.int32)
        names = tuple(name for name, _ in found)
        rows = builder.rows.find(names, np.ones(len(names), np.int64), partition)
        offset = np.array([part["committed_offset"] for _, part in found], np.int64)
        good = (rows >= 0) & (offset >= 0)
        np.add.at(self.sums, rows[good], offset[good])
        np.add.at(self.groups, rows[good], 1)


async def read_committed(
    client: ClusterClient, builder: SampleBuilder, missing_data: MissingData, *, deadline: float
) -> None:
    """Write the sums of all partitions into their rows, or none if a group cannot be read."""
    total = CommittedSums(np.zeros(len(builder), np.int64), np.zeros(len(builder), np.int32))
    brokers = _coordinators(client, builder, total)
    listed = await asyncio.gather(*(_list_groups(broker, total, deadline) for broker in brokers))
    # While a group's coordinator changes, two brokers may list the group; it must be added once.
    coordinator_of = {group: at for at, groups in enumerate(listed) for group in groups}
    if len(coordinator_of) > MAX_GROUPS:
        message = f"{len(coordinator_of)} consumer groups; committed offsets are read of at most {MAX_GROUPS}"
        total.failures.append((Reason.TOO_MANY_GROUPS, message))
    if not total.failures:
        groups_by_broker = [
            [group for group, coordinator in coordinator_of.items() if coordinator == at] for at in range(len(brokers))
        ]
        await asyncio.gather(
            *(
                _add_groups(broker, groups, total, builder, deadline)
                for broker, groups in zip(brokers, groups_by_broker, strict=True)
            )
        )
    if total.failures:
        reason, message = total.failures[0]
        missing_data.add(DataKind.COMMITTED, reason, len(builder), message)
        builder.committed_offset_sum[:] = UNKNOWN
        return
    builder.committed_offset_sum[:] = total.sums
    builder.committed_groups[:] = total.groups


def _coordinators(client: ClusterClient, builder: SampleBuilder, total: CommittedSums) -> list[Node]:
    """Return the coordinators of groups: the leaders of the offsets topic, or all brokers with replicas if the user cannot see it."""
    if OFFSETS_TOPIC in builder.topics:
        at = builder.topics.index(OFFSETS_TOPIC)
        ids = np.unique(builder.leader[builder.first_row[at] : builder.first_row[at + 1]])
    else:
        ids = np.unique(builder.replicas[builder.replicas >= 0])
    found = []
    for broker_id in ids.tolist():
        broker = client.broker(broker_id)
        if broker is not None:
            found.append(broker)
        elif broker_id < 0:
            total.failures.append((Reason.NO_LEADER, f"a partition of {OFFSETS_TOPIC} has no leader"))
        else:
            total.failures.append(
                (Reason.CONNECTION, f"broker {broker_id}, a coordinator of groups, is not in the metadata")
            )
    return found


async def _list_groups(broker: Node, total: CommittedSums, deadline: float) -> list[str]:
    try:
        decode = body_decoder(ApiKey.LIST_GROUPS, MAX_DECODED_BYTES)
        body = await broker.request(ApiKey.LIST_GROUPS, {}, decode, deadline=deadline, attempts=REQUEST_ATTEMPTS)
    except RequestFailed as failure:
        total.failures.append((reason_of_failure(failure), failure.reason))
        return []
    if body["error_code"] != ErrorCode.NONE:
        error = ErrorCode.of(body["error_code"])
        total.failures.append((reason_of(error), f"{broker.name} returned no groups: {error.name}"))
    return [group["group_id"] for group in body["groups"] if group["protocol_type"] in PROTOCOL_TYPES]


async def _add_groups(
    broker: Node, groups: Sequence[str], total: CommittedSums, builder: SampleBuilder, deadline: float
) -> None:
    for begin in range(0, len(groups), GROUPS_PER_REQUEST):
        chunk = groups[begin : begin + GROUPS_PER_REQUEST]
        try:
            body = await broker.request(
                ApiKey.OFFSET_FETCH,
                {"groups": [{"group_id": name, "topics": None} for name in chunk]},
                body_decoder(ApiKey.OFFSET_FETCH, MAX_DECODED_BYTES),
                deadline=deadline,
                versions=VERSIONS,
                attempts=REQUEST_ATTEMPTS,
            )
        except RequestFailed as failure:
            total.failures.append((reason_of_failure(failure), failure.reason))
            return
        for group in body["groups"]:
            if group["error_code"] != ErrorCode.NONE:
                error = ErrorCode.of(group["error_code"])
                total.failures.append((reason_of(error), f"group {group['group_id']}: {error.name}"))
                return
            total.add(builder, group["topics"])
