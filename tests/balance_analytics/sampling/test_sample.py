"""One sample: its contents, and missing data with its reason.

Sources: docs/analytics.md (gaps marked and never invented; a broker missing; a topic deleted), KIP-113, KIP-79, KIP-709.
Brokers are simulated; they answer from one description of a cluster.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from balance_analytics.model.samples import UNKNOWN, Samples
from balance_analytics.sampling import committed_offsets, offsets
from balance_analytics.sampling.missing_data import DataKind, Reason
from balance_analytics.sampling.sample import TakenSample, take_sample
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.client import NodeSettings, RequestFailed
from kafka_wire.net.cluster import ClusterClient
from tests.balance_analytics.sampling.simulated_brokers import PartitionState, SimulatedCluster, running, two_topics

ROUND_MS = 1_700_000_040_000
NOW_MS = ROUND_MS + 7
TIMEOUT_S = 30.0
"""Far more than a sample takes here; tests with silent brokers use less."""
SETTINGS = NodeSettings(client_id="tests", connect_timeout_ms=2_000, request_timeout_ms=20_000)


@contextlib.asynccontextmanager
async def linked(
    topics: dict[str, list[PartitionState]] | None = None, settings: NodeSettings = SETTINGS, **more: Any
) -> AsyncIterator[tuple[SimulatedCluster, ClusterClient]]:
    """A simulated cluster and a client of it."""
    async with running(SimulatedCluster(two_topics() if topics is None else topics, **more)) as cluster:
        client = ClusterClient(cluster.bootstrap(), settings)
        try:
            yield cluster, client
        finally:
            await client.close()


async def sample(client: ClusterClient, *, within_s: float = TIMEOUT_S, with_committed: bool = False) -> TakenSample:
    """Take one sample."""
    deadline = asyncio.get_running_loop().time() + within_s
    return await take_sample(client, ROUND_MS, deadline=deadline, now_ms=lambda: NOW_MS, with_committed=with_committed)


def column(samples: Samples, name: str, topic: str) -> list[Any]:
    """A topic's values."""
    (span,) = [span for span in samples.spans() if span.name == topic]
    found: list[Any] = getattr(samples, name)[span.begin : span.end].tolist()
    return found


def instead(key: ApiKey, body: Body | bytes) -> Callable[[ApiKey, int, Body], Body | bytes | None]:
    """Return a function that answers requests of one kind with this body."""
    return lambda requested, _version, _body: body if requested is key else None


async def test_a_sample_contains_leaders_replicas_offsets_and_sizes() -> None:
    """In the order of topics and partitions, with the times of the sample."""
    async with linked() as (cluster, client):
        found = (await sample(client)).samples

    orders = cluster.topics["orders"]
    assert (found.cluster_id, found.round_ms, found.topics) == ("simulated", ROUND_MS, ("orders", "payments"))
    assert found.sampled_at_ms.tolist() == [NOW_MS, NOW_MS]
    assert column(found, "partition", "orders") == [0, 1, 2, 3]
    assert column(found, "leader", "orders") == [order.leader for order in orders]
    assert column(found, "leader_epoch", "orders") == [3] * 4
    assert column(found, "replicas", "orders") == [[*order.replicas, -1] for order in orders]
    assert column(found, "isr", "orders") == [[*order.replicas, -1] for order in orders]
    assert column(found, "start_offset", "orders") == [order.start for order in orders]
    assert column(found, "end_offset", "orders") == [order.end for order in orders]
    sizes = [[*(order.size + broker for broker in order.replicas), UNKNOWN] for order in orders]
    assert column(found, "size_bytes", "orders") == sizes
    assert column(found, "size_bytes", "payments") == [[71, 72, 73], [2, 3, 1]]
    assert column(found, "committed_offset_sum", "payments") == [UNKNOWN, UNKNOWN]


async def test_a_complete_sample_has_no_missing_data() -> None:
    """The counts that alerts are based on are empty."""
    async with linked(groups={"readers": {("orders", 0): 5}}) as (_, client):
        found = await sample(client, with_committed=True)

    assert dict(found.missing_data.counts) == {}


async def test_committed_offsets_are_summed_over_groups() -> None:
    """A group without a committed offset of a partition is not counted there; without any group the sum is 0."""
    groups = {"a": {("orders", 0): 40, ("payments", 1): 5}, "b": {("orders", 0): 60, ("orders", 1): -1}}
    async with linked(groups=groups) as (_, client):
        found = (await sample(client, with_committed=True)).samples

    assert column(found, "committed_offset_sum", "orders") == [100, 0, 0, 0]
    assert column(found, "committed_groups", "orders") == [2, 0, 0, 0]
    assert column(found, "committed_offset_sum", "payments") == [0, 5]


async def test_one_unreadable_group_makes_every_sum_unknown() -> None:
    """If a group were missing in a sum, its consumers would seem to have gone back."""
    async with linked(groups={"a": {("orders", 0): 40}, "b": {("orders", 0): 60}}) as (cluster, client):
        refused = {"groups": [{"group_id": "b", "error_code": ErrorCode.NOT_COORDINATOR}]}
        cluster.instead[1] = instead(ApiKey.OFFSET_FETCH, refused)
        found = await sample(client, with_committed=True)

    assert column(found.samples, "committed_offset_sum", "orders") == [UNKNOWN] * 4
    assert column(found.samples, "committed_groups", "orders") == [0] * 4
    assert dict(found.missing_data.counts) == {(DataKind.COMMITTED, Reason.REFUSED): 6}


async def test_only_leaders_of_the_offsets_topic_are_asked_for_groups() -> None:
    """Other brokers have no groups: a controller that forwards the request would return a broker's groups a second time."""
    topics = {**two_topics(), "__consumer_offsets": [PartitionState(1, [1, 2])]}
    async with linked(topics, groups={"a": {("orders", 0): 40}}) as (cluster, client):
        found = await sample(client, with_committed=True)

    assert {broker for broker, key, _ in cluster.requests if key is ApiKey.LIST_GROUPS} == {1}
    assert column(found.samples, "committed_offset_sum", "orders") == [40, 0, 0, 0]


async def test_a_group_listed_by_two_brokers_is_counted_once() -> None:
    """This happens while its coordinator changes."""
    async with linked(groups={"a": {("orders", 0): 40}}) as (cluster, client):
        listed = {"groups": [{"group_id": "a", "protocol_type": "consumer"}]}
        cluster.instead[3] = instead(ApiKey.LIST_GROUPS, listed)
        found = await sample(client, with_committed=True)

    assert column(found.samples, "committed_offset_sum", "orders") == [40, 0, 0, 0]
    assert column(found.samples, "committed_groups", "orders") == [1, 0, 0, 0]


@pytest.mark.parametrize(("leader", "reason"), [(-1, Reason.NO_LEADER), (9, Reason.CONNECTION)])
async def test_an_offline_coordinator_makes_every_sum_unknown(leader: int, reason: Reason) -> None:
    """Its groups are not known."""
    topics = {"orders": [PartitionState(1, [1])], "__consumer_offsets": [PartitionState(leader, [1, 2])]}
    async with linked(topics, groups={"a": {("orders", 0): 40}}) as (_, client):
        found = await sample(client, with_committed=True)

    assert column(found.samples, "committed_offset_sum", "orders") == [UNKNOWN]
    assert found.missing_data.counts[DataKind.COMMITTED, reason] == 2


async def test_too_many_groups_make_every_sum_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of groups read in a sample is limited; no offsets are read beyond it."""
    monkeypatch.setattr(committed_offsets, "MAX_GROUPS", 1)
    async with linked(groups={"a": {}, "b": {}}) as (cluster, client):
        found = await sample(client, with_committed=True)

    assert dict(found.missing_data.counts) == {(DataKind.COMMITTED, Reason.TOO_MANY_GROUPS): 6}
    assert ApiKey.OFFSET_FETCH not in {key for _, key, _ in cluster.requests}


async def test_data_of_an_unreachable_broker_is_missing() -> None:
    """Offsets of the partitions that it leads, and sizes of its replicas; all other data is in the sample."""
    async with linked() as (cluster, client):
        await cluster.stop(3)
        found = await sample(client)

    samples = found.samples
    assert column(samples, "end_offset", "orders") == [100, 101, UNKNOWN, 103]
    assert column(samples, "start_offset", "orders") == [0, 1, UNKNOWN, 3]
    assert column(samples, "size_bytes", "payments") == [[71, 72, UNKNOWN], [2, UNKNOWN, 1]]
    assert column(samples, "leader", "orders") == [1, 2, 3, 1]
    expected = {(DataKind.OFFSETS, Reason.CONNECTION): 1, (DataKind.SIZES, Reason.CONNECTION): 4}
    assert dict(found.missing_data.counts) == expected
    assert any("cannot be reached" in message for message in found.missing_data.examples)


async def test_data_of_a_broker_that_left_the_metadata_is_missing() -> None:
    """A killed broker leaves the metadata when its session ends; its replicas are still assigned."""
    async with linked() as (cluster, client):
        await cluster.stop(3)
        del cluster.ports[3]
        found = await sample(client)

    assert dict(found.missing_data.counts) == {
        (DataKind.OFFSETS, Reason.CONNECTION): 1,
        (DataKind.SIZES, Reason.CONNECTION): 4,
    }
    assert column(found.samples, "end_offset", "orders") == [100, 101, UNKNOWN, 103]


@pytest.mark.slow
async def test_a_silent_broker_does_not_delay_a_sample_past_the_request_timeout() -> None:
    """It accepts requests and does not respond; the sample contains the data of the other brokers."""
    async with linked(settings=NodeSettings(request_timeout_ms=500)) as (cluster, client):
        await sample(client)
        cluster.silent.add(2)
        client._requests = 1  # the next metadata request goes to the third broker
        found = await sample(client)

    assert {what for what, _ in found.missing_data.counts} == {DataKind.OFFSETS, DataKind.SIZES}
    assert {Reason.TIMED_OUT} <= {reason for _, reason in found.missing_data.counts}
    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]
    assert column(found.samples, "end_offset", "payments") == [7, UNKNOWN]


@pytest.mark.slow
async def test_metadata_is_read_from_another_broker_if_one_is_silent() -> None:
    """Within the same sample."""
    async with linked(settings=NodeSettings(request_timeout_ms=300)) as (cluster, client):
        await sample(client)
        cluster.silent.update({1, 2})
        found = await sample(client)

    assert len(found.samples) == 6


async def test_offsets_are_missing_if_the_leader_changes_during_a_sample() -> None:
    """After the metadata was read and before offsets are; the next sample asks the new leader."""
    async with linked() as (cluster, client):

        def move(key: ApiKey, _version: int, _body: Body) -> None:
            if key is ApiKey.LIST_OFFSETS:
                cluster.topics["orders"][1].leader = 3

        cluster.instead[2] = move
        found, later = await sample(client), await sample(client)

    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]
    assert dict(found.missing_data.counts) == {(DataKind.OFFSETS, Reason.MOVED): 1}
    assert column(later.samples, "end_offset", "orders") == [100, 101, 102, 103]
    assert dict(later.missing_data.counts) == {}


async def test_a_topic_deleted_during_a_sample_has_unknown_offsets_and_is_not_in_the_next() -> None:
    """Deleted after the metadata was read, and before offsets are."""
    async with linked() as (cluster, client):

        def delete(key: ApiKey, _version: int, _body: Body) -> None:
            if key is ApiKey.LIST_OFFSETS:
                cluster.topics.pop("payments", None)

        cluster.instead[1] = cluster.instead[2] = cluster.instead[3] = delete
        found, later = await sample(client), await sample(client)

    assert column(found.samples, "end_offset", "payments") == [UNKNOWN, UNKNOWN]
    assert column(found.samples, "end_offset", "orders") == [100, 101, 102, 103]
    assert found.missing_data.counts[DataKind.OFFSETS, Reason.DELETED] == 2
    assert found.missing_data.counts[DataKind.SIZES, Reason.ABSENT] == 6
    assert later.samples.topics == ("orders",)


async def test_a_partition_without_a_leader_has_sizes_and_no_offsets() -> None:
    """Sizes come from the replicas."""
    topics = {"lone": [PartitionState(-1, [1, 2], size=5)]}
    async with linked(topics) as (_, client):
        found = await sample(client)

    assert column(found.samples, "end_offset", "lone") == [UNKNOWN]
    assert column(found.samples, "size_bytes", "lone") == [[6, 7]]
    assert dict(found.missing_data.counts) == {(DataKind.OFFSETS, Reason.NO_LEADER): 1}
    assert found.samples.sampled_at_ms.tolist() == [NOW_MS]


async def test_a_response_over_the_limit_affects_only_its_broker() -> None:
    """The limit is checked against the size before the response, before memory is allocated for it."""
    async with linked(settings=NodeSettings(max_frame_bytes=4_096)) as (cluster, client):
        folder = {"log_dir": "x" * 5_000, "topics": []}
        cluster.instead[2] = instead(ApiKey.DESCRIBE_LOG_DIRS, {"results": [folder]})
        found = await sample(client)

    assert dict(found.missing_data.counts) == {(DataKind.SIZES, Reason.CONNECTION): 5}
    assert any("the limit is 4096" in message for message in found.missing_data.examples)
    assert column(found.samples, "end_offset", "orders") == [100, 101, 102, 103]


async def test_a_malformed_response_affects_only_its_broker() -> None:
    """Bytes that cannot be decoded are missing data with a reason; the sampler continues."""
    async with linked() as (cluster, client):
        cluster.instead[2] = instead(ApiKey.LIST_OFFSETS, b"\0\0\0\0\0garbage")
        found = await sample(client)

    assert dict(found.missing_data.counts) == {(DataKind.OFFSETS, Reason.MALFORMED): 2}
    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]


async def test_offsets_of_partitions_that_were_not_requested_are_ignored() -> None:
    """Offsets below 0 are ignored too."""
    async with linked() as (cluster, client):
        partitions = [
            {"partition_index": 0, "offset": 1},
            {"partition_index": 1, "offset": -7},
            {"partition_index": 77, "offset": 5},
        ]
        cluster.instead[2] = instead(ApiKey.LIST_OFFSETS, {"topics": [{"name": "orders", "partitions": partitions}]})
        found = await sample(client)

    assert column(found.samples, "end_offset", "orders") == [100, UNKNOWN, 102, 103]
    assert dict(found.missing_data.counts) == {(DataKind.OFFSETS, Reason.ABSENT): 2}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}, Reason.NOT_ALLOWED),
        ({"results": [{"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "log_dir": "/bad"}]}, Reason.LOG_DIR),
        ({"results": []}, Reason.ABSENT),
    ],
)
async def test_missing_sizes_have_a_reason(body: Body, reason: Reason) -> None:
    """The user lacks the right, a log directory is offline, or a broker before version 3 returns an empty response."""
    async with linked() as (cluster, client):
        cluster.instead[1] = instead(ApiKey.DESCRIBE_LOG_DIRS, body)
        found = await sample(client)

    assert dict(found.missing_data.counts) == {(DataKind.SIZES, reason): 5}


async def test_a_future_replica_does_not_count_as_the_size() -> None:
    """While a replica moves between log directories (KIP-113, is_future_key)."""
    async with linked({"lone": [PartitionState(1, [1], size=5)]}) as (cluster, client):
        parts = [{"partition_index": 0, "partition_size": size, "is_future_key": size == 2} for size in (9, 2)]
        folders = [
            {"log_dir": f"/{at}", "topics": [{"name": "lone", "partitions": [part]}]} for at, part in enumerate(parts)
        ]
        cluster.instead[1] = instead(ApiKey.DESCRIBE_LOG_DIRS, {"results": folders})
        found = await sample(client)

    assert column(found.samples, "size_bytes", "lone") == [[9]]


async def test_offsets_are_read_in_requests_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """One large request would keep a broker's request handler busy."""
    monkeypatch.setattr(offsets, "PARTITIONS_PER_REQUEST", 3)
    topics = {name: [PartitionState(1, [1], end=at) for at in range(4)] for name in ("a", "b")}
    async with linked(topics) as (cluster, client):
        found = await sample(client)

    requests = [body for _, key, body in cluster.requests if key is ApiKey.LIST_OFFSETS]
    counts = [sum(len(topic["partitions"]) for topic in body["topics"]) for body in requests]
    assert counts == [3, 3, 3, 3, 2, 2]
    assert column(found.samples, "end_offset", "b") == [0, 1, 2, 3]


async def test_a_sample_without_metadata_fails_with_the_error_of_each_broker() -> None:
    """With the address and the reason."""
    async with linked() as (cluster, client):
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        with pytest.raises(
            RequestFailed, match=r"no broker returned the cluster's metadata: 127.0.0.1:\d+ cannot be reached"
        ):
            await sample(client)


async def test_an_empty_cluster_gives_an_empty_sample() -> None:
    """No topics, and no division by zero."""
    async with linked({}) as (_, client):
        found = await sample(client, with_committed=True)

    assert len(found.samples) == 0
    assert dict(found.missing_data.counts) == {}


async def test_a_broker_with_a_new_address_is_contacted_there() -> None:
    """A replaced pod has another address; the connection to the old one is closed."""
    async with linked() as (cluster, client):
        before = (await sample(client), client.broker(3))[1]
        async with running(SimulatedCluster(cluster.topics), (3,)) as other:
            cluster.ports[3] = other.ports[3]
            found = await sample(client)

        assert before is not client.broker(3)
        assert dict(found.missing_data.counts) == {}
        assert ApiKey.LIST_OFFSETS in {key for _, key, _ in other.requests}


def test_responses_of_simulated_brokers_are_encoded_by_the_codec() -> None:
    """So they cannot contain fields that Kafka does not have."""
    body = SimulatedCluster(two_topics(), ports={1: 9092}).metadata({"topics": None})

    assert len(codec.decode("MetadataResponse", 12, codec.encode("MetadataResponse", 12, body))["topics"]) == 2
