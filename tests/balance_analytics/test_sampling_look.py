"""One look: what is in it when all is well, and what is missing, with which reason, when something is not.

Sources: docs/analytics.md (gaps marked and never invented; a broker missing; a topic deleted), KIP-113, KIP-79, KIP-709.
Brokers are stand-ins that answer from one description of a cluster.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from balance_analytics.model.samples import UNKNOWN, Samples
from balance_analytics.sampling import committed, offsets
from balance_analytics.sampling.asking import AskFailed
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.left_out import Reason, What
from balance_analytics.sampling.look import Look, take_look
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import NodeSettings
from tests.balance_analytics.sampling_brokers import PartitionState, StandInCluster, running, two_topics

ROUND_MS = 1_700_000_040_000
NOW_MS = ROUND_MS + 7
PATIENCE_S = 30.0
"""Far more than a look takes here; a look that waits for somebody is given less."""
SETTINGS = NodeSettings(client_id="tests", connect_timeout_ms=2_000, request_timeout_ms=20_000)


@contextlib.asynccontextmanager
async def linked(
    topics: dict[str, list[PartitionState]] | None = None, settings: NodeSettings = SETTINGS, **more: Any
) -> AsyncIterator[tuple[StandInCluster, ClusterLink]]:
    """A cluster and a link to it."""
    async with running(StandInCluster(two_topics() if topics is None else topics, **more)) as cluster:
        link = ClusterLink(cluster.bootstrap(), settings)
        try:
            yield cluster, link
        finally:
            await link.close()


async def look(link: ClusterLink, *, within_s: float = PATIENCE_S, with_committed: bool = False) -> Look:
    """Look once."""
    deadline = asyncio.get_running_loop().time() + within_s
    return await take_look(link, ROUND_MS, deadline=deadline, now_ms=lambda: NOW_MS, with_committed=with_committed)


def column(samples: Samples, name: str, topic: str) -> list[Any]:
    """A topic's values."""
    (span,) = [one for one in samples.spans() if one.name == topic]
    found: list[Any] = getattr(samples, name)[span.begin : span.end].tolist()
    return found


def instead(key: ApiKey, body: Body | bytes) -> Callable[[ApiKey, int, Body], Body | bytes | None]:
    """Answer one kind of request so."""
    return lambda asked, _version, _body: body if asked is key else None


async def test_a_look_has_what_the_cluster_has() -> None:
    """Leadership, replicas, offsets and sizes, in the order of topics and partitions, with the times of the look."""
    async with linked() as (cluster, link):
        found = (await look(link)).samples

    orders = cluster.topics["orders"]
    assert (found.cluster_id, found.round_ms, found.topics) == ("stand-in", ROUND_MS, ("orders", "payments"))
    assert found.sampled_at_ms.tolist() == [NOW_MS, NOW_MS]
    assert column(found, "partition", "orders") == [0, 1, 2, 3]
    assert [one.leader for one in orders] == column(found, "leader", "orders")
    assert column(found, "leader_epoch", "orders") == [3] * 4
    assert [[*one.replicas, -1] for one in orders] == column(found, "replicas", "orders")
    assert [[*one.replicas, -1] for one in orders] == column(found, "isr", "orders")
    assert [one.start for one in orders] == column(found, "start_offset", "orders")
    assert [one.end for one in orders] == column(found, "end_offset", "orders")
    sizes = [[*(one.size + broker for broker in one.replicas), UNKNOWN] for one in orders]
    assert sizes == column(found, "size_bytes", "orders")
    assert column(found, "size_bytes", "payments") == [[71, 72, 73], [2, 3, 1]]
    assert column(found, "committed_offset_sum", "payments") == [UNKNOWN, UNKNOWN]


async def test_nothing_is_left_out_when_all_is_well() -> None:
    """The counts that alerts are made of stay empty."""
    async with linked(groups={"readers": {("orders", 0): 5}}) as (_, link):
        found = await look(link, with_committed=True)

    assert dict(found.left_out.counts) == {}


async def test_committed_offsets_are_added_over_groups() -> None:
    """A group that committed nothing of a partition does not count there; none at all is a sum of 0."""
    groups = {"a": {("orders", 0): 40, ("payments", 1): 5}, "b": {("orders", 0): 60, ("orders", 1): -1}}
    async with linked(groups=groups) as (_, link):
        found = (await look(link, with_committed=True)).samples

    assert column(found, "committed_offset_sum", "orders") == [100, 0, 0, 0]
    assert column(found, "committed_groups", "orders") == [2, 0, 0, 0]
    assert column(found, "committed_offset_sum", "payments") == [0, 5]


async def test_a_group_that_cannot_be_asked_leaves_every_sum_unknown() -> None:
    """A sum that lacks a group would look like consumers that went back."""
    async with linked(groups={"a": {("orders", 0): 40}, "b": {("orders", 0): 60}}) as (cluster, link):
        refused = {"groups": [{"group_id": "b", "error_code": ErrorCode.NOT_COORDINATOR}]}
        cluster.instead[1] = instead(ApiKey.OFFSET_FETCH, refused)
        found = await look(link, with_committed=True)

    assert column(found.samples, "committed_offset_sum", "orders") == [UNKNOWN] * 4
    assert column(found.samples, "committed_groups", "orders") == [0] * 4
    assert dict(found.left_out.counts) == {(What.COMMITTED, Reason.REFUSED): 6}


async def test_coordinators_are_the_leaders_of_the_offsets_topic() -> None:
    """Nobody else knows of groups: a controller that passes the question on would tell a broker's groups once more."""
    topics = {**two_topics(), "__consumer_offsets": [PartitionState(1, [1, 2])]}
    async with linked(topics, groups={"a": {("orders", 0): 40}}) as (cluster, link):
        found = await look(link, with_committed=True)

    assert {broker for broker, key, _ in cluster.asked if key is ApiKey.LIST_GROUPS} == {1}
    assert column(found.samples, "committed_offset_sum", "orders") == [40, 0, 0, 0]


async def test_a_group_that_two_brokers_tell_of_is_added_once() -> None:
    """As while its coordinator changes."""
    async with linked(groups={"a": {("orders", 0): 40}}) as (cluster, link):
        listed = {"groups": [{"group_id": "a", "protocol_type": "consumer"}]}
        cluster.instead[3] = instead(ApiKey.LIST_GROUPS, listed)
        found = await look(link, with_committed=True)

    assert column(found.samples, "committed_offset_sum", "orders") == [40, 0, 0, 0]
    assert column(found.samples, "committed_groups", "orders") == [1, 0, 0, 0]


@pytest.mark.parametrize(("leader", "reason"), [(-1, Reason.NO_LEADER), (9, Reason.CONNECTION)])
async def test_groups_whose_coordinator_is_away_leave_every_sum_unknown(leader: int, reason: Reason) -> None:
    """Nobody can tell which groups these are."""
    topics = {"orders": [PartitionState(1, [1])], "__consumer_offsets": [PartitionState(leader, [1, 2])]}
    async with linked(topics, groups={"a": {("orders", 0): 40}}) as (_, link):
        found = await look(link, with_committed=True)

    assert column(found.samples, "committed_offset_sum", "orders") == [UNKNOWN]
    assert found.left_out.counts[What.COMMITTED, reason] == 2


async def test_a_cluster_with_too_many_groups_keeps_its_sums_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on what is asked in a look."""
    monkeypatch.setattr(committed, "MAX_GROUPS", 1)
    async with linked(groups={"a": {}, "b": {}}) as (cluster, link):
        found = await look(link, with_committed=True)

    assert dict(found.left_out.counts) == {(What.COMMITTED, Reason.TOO_MANY_GROUPS): 6}
    assert ApiKey.OFFSET_FETCH not in {key for _, key, _ in cluster.asked}


async def test_a_broker_that_is_away_leaves_its_part_unknown() -> None:
    """Its partitions' offsets and its replicas' sizes; everything else is there."""
    async with linked() as (cluster, link):
        await cluster.stop(3)
        found = await look(link)

    samples = found.samples
    assert column(samples, "end_offset", "orders") == [100, 101, UNKNOWN, 103]
    assert column(samples, "start_offset", "orders") == [0, 1, UNKNOWN, 3]
    assert column(samples, "size_bytes", "payments") == [[71, 72, UNKNOWN], [2, UNKNOWN, 1]]
    assert column(samples, "leader", "orders") == [1, 2, 3, 1]
    expected = {(What.OFFSETS, Reason.CONNECTION): 1, (What.SIZES, Reason.CONNECTION): 4}
    assert dict(found.left_out.counts) == expected
    assert any("cannot be reached" in words for words in found.left_out.examples)


async def test_a_broker_that_the_cluster_no_longer_names_leaves_its_part_unknown() -> None:
    """As with a killed broker, which leaves the metadata when its session ends; its replicas are still assigned."""
    async with linked() as (cluster, link):
        await cluster.stop(3)
        del cluster.ports[3]
        found = await look(link)

    assert dict(found.left_out.counts) == {(What.OFFSETS, Reason.CONNECTION): 1, (What.SIZES, Reason.CONNECTION): 4}
    assert column(found.samples, "end_offset", "orders") == [100, 101, UNKNOWN, 103]


async def test_a_silent_broker_costs_a_look_no_more_than_its_time() -> None:
    """It takes requests and does not answer: at the look's deadline the others' values are there."""
    async with linked(settings=NodeSettings(request_timeout_ms=500)) as (cluster, link):
        await look(link)
        cluster.silent.add(2)
        link._looks = 1  # the next to tell the metadata is the third broker
        found = await look(link)

    assert {what for what, _ in found.left_out.counts} == {What.OFFSETS, What.SIZES}
    assert {Reason.TIMED_OUT} <= {reason for _, reason in found.left_out.counts}
    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]
    assert column(found.samples, "end_offset", "payments") == [7, UNKNOWN]


async def test_a_silent_broker_is_not_the_last_word_on_the_metadata() -> None:
    """Another is asked, within the same look."""
    async with linked(settings=NodeSettings(request_timeout_ms=300)) as (cluster, link):
        await look(link)
        cluster.silent.update({1, 2})
        found = await look(link)

    assert len(found.samples) == 6


async def test_a_leader_that_moved_meanwhile_leaves_its_partition_unknown() -> None:
    """Between the metadata and the question; the next look asks the new one."""
    async with linked() as (cluster, link):

        def move(key: ApiKey, _version: int, _body: Body) -> None:
            if key is ApiKey.LIST_OFFSETS:
                cluster.topics["orders"][1].leader = 3

        cluster.instead[2] = move
        found, later = await look(link), await look(link)

    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]
    assert dict(found.left_out.counts) == {(What.OFFSETS, Reason.MOVED): 1}
    assert column(later.samples, "end_offset", "orders") == [100, 101, 102, 103]
    assert dict(later.left_out.counts) == {}


async def test_a_topic_deleted_meanwhile_is_unknown_and_gone_the_next_time() -> None:
    """After it was listed, and before its leaders were asked."""
    async with linked() as (cluster, link):

        def delete(key: ApiKey, _version: int, _body: Body) -> None:
            if key is ApiKey.LIST_OFFSETS:
                cluster.topics.pop("payments", None)

        cluster.instead[1] = cluster.instead[2] = cluster.instead[3] = delete
        found, later = await look(link), await look(link)

    assert column(found.samples, "end_offset", "payments") == [UNKNOWN, UNKNOWN]
    assert column(found.samples, "end_offset", "orders") == [100, 101, 102, 103]
    assert found.left_out.counts[What.OFFSETS, Reason.GONE] == 2
    assert found.left_out.counts[What.SIZES, Reason.ABSENT] == 6
    assert later.samples.topics == ("orders",)


async def test_a_partition_without_a_leader_is_not_asked_about() -> None:
    """Its replicas' sizes are known all the same."""
    topics = {"lone": [PartitionState(-1, [1, 2], size=5)]}
    async with linked(topics) as (_, link):
        found = await look(link)

    assert column(found.samples, "end_offset", "lone") == [UNKNOWN]
    assert column(found.samples, "size_bytes", "lone") == [[6, 7]]
    assert dict(found.left_out.counts) == {(What.OFFSETS, Reason.NO_LEADER): 1}
    assert found.samples.sampled_at_ms.tolist() == [NOW_MS]


async def test_an_answer_over_the_limit_is_refused_and_costs_that_broker_alone() -> None:
    """The limit is checked on the size in front of the answer, before anything is set aside for it."""
    async with linked(settings=NodeSettings(max_frame_bytes=4_096)) as (cluster, link):
        folder = {"log_dir": "x" * 5_000, "topics": []}
        cluster.instead[2] = instead(ApiKey.DESCRIBE_LOG_DIRS, {"results": [folder]})
        found = await look(link)

    assert dict(found.left_out.counts) == {(What.SIZES, Reason.CONNECTION): 5}
    assert any("the limit is 4096" in words for words in found.left_out.examples)
    assert column(found.samples, "end_offset", "orders") == [100, 101, 102, 103]


async def test_a_malformed_answer_costs_that_broker_alone() -> None:
    """Bytes that are no answer end in a reason, not in the sampler's end."""
    async with linked() as (cluster, link):
        cluster.instead[2] = instead(ApiKey.LIST_OFFSETS, b"\0\0\0\0\0garbage")
        found = await look(link)

    assert dict(found.left_out.counts) == {(What.OFFSETS, Reason.MALFORMED): 2}
    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]


async def test_what_a_broker_tells_of_others_partitions_is_not_taken() -> None:
    """Nobody asked it; and offsets below 0 are none."""
    async with linked() as (cluster, link):
        partitions = [
            {"partition_index": 0, "offset": 1},
            {"partition_index": 1, "offset": -7},
            {"partition_index": 77, "offset": 5},
        ]
        cluster.instead[2] = instead(ApiKey.LIST_OFFSETS, {"topics": [{"name": "orders", "partitions": partitions}]})
        found = await look(link)

    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]
    assert dict(found.left_out.counts) == {(What.OFFSETS, Reason.ABSENT): 2}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}, Reason.NOT_ALLOWED),
        ({"results": [{"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "log_dir": "/bad"}]}, Reason.LOG_DIR),
        ({"results": []}, Reason.ABSENT),
    ],
)
async def test_sizes_that_are_not_told_have_a_reason(body: Body, reason: Reason) -> None:
    """A user without the right, a folder that is offline, and a broker of before version 3, which says nothing at all."""
    async with linked() as (cluster, link):
        cluster.instead[1] = instead(ApiKey.DESCRIBE_LOG_DIRS, body)
        found = await look(link)

    assert dict(found.left_out.counts) == {(What.SIZES, reason): 5}


async def test_the_copy_that_is_being_moved_between_folders_is_not_the_replicas_size() -> None:
    """KIP-113: is_future_key."""
    async with linked({"lone": [PartitionState(1, [1], size=5)]}) as (cluster, link):
        parts = [{"partition_index": 0, "partition_size": size, "is_future_key": size == 2} for size in (9, 2)]
        folders = [
            {"log_dir": f"/{at}", "topics": [{"name": "lone", "partitions": [part]}]} for at, part in enumerate(parts)
        ]
        cluster.instead[1] = instead(ApiKey.DESCRIBE_LOG_DIRS, {"results": folders})
        found = await look(link)

    assert column(found.samples, "size_bytes", "lone") == [[9]]


async def test_a_leader_is_asked_for_so_many_partitions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's request handler is not held up by one huge question."""
    monkeypatch.setattr(offsets, "PARTITIONS_PER_REQUEST", 3)
    topics = {name: [PartitionState(1, [1], end=at) for at in range(4)] for name in ("a", "b")}
    async with linked(topics) as (cluster, link):
        found = await look(link)

    asked = [body for _, key, body in cluster.asked if key is ApiKey.LIST_OFFSETS]
    counts = [sum(len(topic["partitions"]) for topic in body["topics"]) for body in asked]
    assert counts == [3, 3, 3, 3, 2, 2]
    assert column(found.samples, "end_offset", "b") == [0, 1, 2, 3]


async def test_nobody_who_tells_the_metadata_is_said_in_words() -> None:
    """Who was asked, and why each failed."""
    async with linked() as (cluster, link):
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        with pytest.raises(AskFailed, match=r"no broker tells the cluster's metadata: 127.0.0.1:\d+ cannot be reached"):
            await look(link)


async def test_an_empty_cluster_is_an_empty_look() -> None:
    """Nothing to divide by."""
    async with linked({}) as (_, link):
        found = await look(link, with_committed=True)

    assert len(found.samples) == 0
    assert dict(found.left_out.counts) == {}


async def test_a_broker_at_another_address_is_asked_there() -> None:
    """A pod that was replaced has another; the connection to the old one is closed."""
    async with linked() as (cluster, link):
        before = (await look(link), link.broker(3))[1]
        async with running(StandInCluster(cluster.topics), (3,)) as other:
            cluster.ports[3] = other.ports[3]
            found = await look(link)

        assert before is not link.broker(3)
        assert dict(found.left_out.counts) == {}
        assert ApiKey.LIST_OFFSETS in {key for _, key, _ in other.asked}


def test_the_stand_ins_answers_are_kafkas() -> None:
    """Every one is encoded by the codec, so a field that Kafka does not have cannot be in one."""
    body = StandInCluster(two_topics(), ports={1: 9092}).metadata({"topics": None})

    assert len(codec.decode("MetadataResponse", 12, codec.encode("MetadataResponse", 12, body))["topics"]) == 2
