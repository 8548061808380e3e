"""The reader of `steward what-if`: columns, throttles, notes for what is denied, and a Cluster as the source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controller_core.views.what_if import DEFAULT_BYTES_PER_SECOND, BrokerState, Rate, RateSource
from kafka_operator.admin.port import CallRefusedError, ClusterUnreachableError
from kafka_operator.decide.kafka.layout import Disks
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.resources.reassignment import Partition
from kafka_operator.what_if.cluster_resource import ClusterResource, ClusterResourceError, read_named
from kafka_operator.what_if.reading import read_cluster
from reconciler.kube.port import RefusedError
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.fake_pods import FakePods
from tests.kafka_operator.makers import raw_cluster
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import in_virtual_time

DENIED = CallRefusedError(Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "denied"))


def shop() -> FakeKafka:
    """Two topics on four brokers in two racks; broker 4 does not report its disks."""
    kafka = FakeKafka(Gate())
    kafka.add("orders", [(1, 2), (2, 3)], min_insync_replicas="2")
    kafka.add("audit", [(3, 1)])
    kafka.racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    kafka.sizes = {Partition("orders", 0): 500, Partition("audit", 0): 70}
    kafka.disks = {broker: Disks(1_000, 400) for broker in (1, 2, 3)}
    return kafka


@in_virtual_time
async def test_a_cluster_is_read_into_columns_with_racks_sizes_disks_and_min_isr() -> None:
    """Topics by name; numbers of brokers follow their ids."""
    read = await read_cluster(shop())
    columns = read.snapshot.columns

    assert [*columns.topics] == ["audit", "orders"]
    assert (columns.topic.tolist(), columns.partition.tolist()) == ([0, 1, 1], [0, 0, 1])
    assert columns.replicas.tolist() == [[2, 0], [0, 1], [1, 2]]
    assert columns.leader.tolist() == [2, 0, 1]
    assert columns.isr.tolist() == columns.replicas.tolist()
    assert columns.min_isr.tolist() == [1, 2, 2]
    assert columns.bytes is not None
    assert columns.bytes.tolist() == [70, 500, 0]
    assert read.snapshot.brokers == (
        BrokerState(1, "a", True, 1_000, 400),
        BrokerState(2, "b", True, 1_000, 400),
        BrokerState(3, "a", True, 1_000, 400),
        BrokerState(4, "b"),
    )
    assert read.notes == ()


@in_virtual_time
async def test_a_partition_that_moves_has_the_replicas_of_both_and_its_target() -> None:
    """KIP-455: while it moves it has the union; those that remain are the target."""
    kafka = shop()
    kafka.move_s = 1_000
    await kafka.alter_reassignments({Partition("audit", 0): (4, 1)})

    columns = (await read_cluster(kafka)).snapshot.columns

    assert sorted(columns.replicas[0].tolist()) == [0, 2, 3]
    assert columns.target[0].tolist() == [3, 0, -1]
    assert columns.target[1].tolist() == [0, 1, -1]


@in_virtual_time
async def test_the_rate_is_the_given_one_else_the_lowest_throttle_else_the_default() -> None:
    """Leader. and follower.replication.throttled.rate of any broker."""
    kafka = shop()
    without = await read_cluster(kafka)
    kafka.broker_configs = {
        1: {"leader.replication.throttled.rate": "3000"},
        2: {"follower.replication.throttled.rate": "2000", "leader.replication.throttled.rate": "-1"},
    }
    throttled = await read_cluster(kafka)

    assert without.rate(None) == Rate(DEFAULT_BYTES_PER_SECOND, RateSource.DEFAULT)
    assert throttled.rate(None) == Rate(2000, RateSource.THROTTLE)
    assert throttled.rate(7) == Rate(7, RateSource.GIVEN)


@in_virtual_time
async def test_denied_answers_become_notes_and_unknown_figures() -> None:
    """Describe on topics is enough for leaders; sizes and throttles need rights on the cluster."""
    kafka = shop()

    async def denied(*_: object) -> Any:
        raise DENIED

    for name in ("list_reassignments", "describe_log_dirs", "describe_disks", "describe_broker_configs"):
        setattr(kafka, name, denied)
    read = await read_cluster(kafka)

    assert read.snapshot.columns.bytes is None
    assert [broker.capacity_bytes for broker in read.snapshot.brokers] == [None] * 4
    what = ("running reassignments", "the sizes of logs", "the capacities of disks", "the throttles of brokers")
    assert read.notes == tuple(f"{part} cannot be read: CLUSTER_AUTHORIZATION_FAILED: denied" for part in what)


@in_virtual_time
async def test_brokers_that_do_not_answer_for_themselves_are_named_in_a_note() -> None:
    """Sizes of a partition come from its other replicas."""
    kafka = shop()
    kafka.silent = {1}

    read = await read_cluster(kafka)

    assert read.snapshot.columns.bytes is not None
    assert read.snapshot.columns.bytes.tolist() == [70, 500, 0]
    assert read.notes[0] == (
        "brokers 1 do not return the sizes of logs: BROKER_NOT_AVAILABLE: Broker 1 does not answer."
    )


@in_virtual_time
async def test_an_empty_cluster_is_read() -> None:
    """No topics: no partitions, and nothing unknown."""
    read = await read_cluster(FakeKafka(Gate()))

    assert len(read.snapshot.columns.topic) == 0
    assert [broker.id for broker in read.snapshot.brokers] == [1, 2, 3, 4]
    assert read.notes == ()


@in_virtual_time
async def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    """Without partitions there is no answer."""
    kafka = shop()
    kafka.reachable = False

    with pytest.raises(ClusterUnreachableError):
        await read_cluster(kafka)


def resource(kube: FakeKube, **spec: Any) -> Callable[[], Awaitable[ClusterResource]]:
    """A Cluster on a fake API server with three broker pods."""
    kube.apply(raw_cluster(**spec))

    async def read() -> ClusterResource:
        return ClusterResource(await read_named(kube, "shop", "main"), kube, FakePods(FakeKafka(Gate()), 3))

    return read


@in_virtual_time
async def test_the_brokers_on_a_node_are_those_of_its_pods() -> None:
    """The pod of ordinal n is broker firstId + n."""
    read = resource(FakeKube(Gate()), brokers={"statefulSet": "main-broker", "firstId": 1})

    found = await read()

    assert await found.brokers_on("node-1") == [2]
    with pytest.raises(ClusterResourceError) as unknown:
        await found.brokers_on("node-9")
    assert str(unknown.value) == (
        "No broker of Cluster shop/main runs on node node-9. Nodes with brokers: node-0, node-1, node-2."
    )


@in_virtual_time
async def test_nodes_of_a_cluster_without_pods_are_unknown() -> None:
    """A Kafka that runs elsewhere has no pods that the operator knows."""
    found = await resource(FakeKube(Gate()))()

    with pytest.raises(ClusterResourceError, match=r"has no spec\.brokers.*--lose broker=1,2"):
        await found.brokers_on("node-1")


@in_virtual_time
async def test_an_unknown_cluster_is_refused_with_the_known_ones() -> None:
    """The message is what the user needs to correct the command."""
    kube = FakeKube(Gate())
    await resource(kube)()

    with pytest.raises(ClusterResourceError, match=r"Namespace shop has no Cluster mian\. Clusters there: main\."):
        await read_named(kube, "shop", "mian")
    with pytest.raises(ClusterResourceError, match=r"Namespace else has no Cluster main\. It has none"):
        await read_named(kube, "else", "main")


@in_virtual_time
async def test_secrets_that_the_account_may_not_get_are_named() -> None:
    """A user of kubectl has other rights than the operator."""
    kube = FakeKube(Gate())
    tls = {"caSecretRef": {"name": "kafka-ca"}}
    found = await resource(kube, tls=tls)()

    async def denied(*_: object) -> Any:
        raise RefusedError("403")

    kube.get_secret = denied
    with pytest.raises(ClusterResourceError, match="not allowed to get the Secrets of Cluster shop/main: kafka-ca"):
        await found.security()
