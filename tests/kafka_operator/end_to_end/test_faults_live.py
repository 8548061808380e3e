"""The operator on a real API server and a stock Kafka cluster, with a proxy between them that injects faults: the outcome is the same.

The many runs are those with fakes (test_faults); these few show that the fakes do not lie about the libraries and the server.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_operator.decide.clusters.cluster import CLUSTER_METRICS_EVERY_S
from lab.faults.kubernetes_proxy import Call, KubernetesProxy, RequestFault, Rule, kubernetes_proxy
from lab.peers.cluster import KafkaCluster
from lab.peers.kubernetes import ADMIN, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.waiting import wait_until
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.stock import Stock

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

SHARE = 0.25
"""Of all calls that have a fault: enough to affect almost every resource."""


@pytest.fixture(scope="module")
def kafka(kafka_cluster: KafkaCluster) -> Stock:
    """The stock cluster of three brokers."""
    return Stock(kafka_cluster.bootstrap())


@pytest.fixture
def proxy(api: KubernetesApi) -> Iterator[KubernetesProxy]:
    """The proxy."""
    with kubernetes_proxy(api) as running:
        yield running


@pytest.fixture
def operator(proxy: KubernetesProxy, tmp_path: Path) -> Iterator[StewardOperator]:
    """An operator of the namespace alone that sees the API server through the proxy."""
    arguments = ["--resync-interval-s=3", "--namespace=faults"]
    process = StewardOperator(proxy.kubeconfig_for(ADMIN, tmp_path), tmp_path, arguments=arguments)
    yield process
    process.close()


@pytest.fixture(scope="module")
def place(api: KubernetesApi) -> Namespace:
    """The namespace."""
    return Namespace(api, "faults")


@pytest.fixture
def shop(place: Namespace, proxy: KubernetesProxy, operator: StewardOperator, kafka: Stock) -> Iterator[Namespace]:
    """The namespace with a Cluster."""
    operator.start()
    place.apply(raw_cluster("main", *kafka.bootstrap.split(",")))
    place.until("Cluster", "main", "True")
    yield place
    proxy.rule = proxy.watch_rule = None
    if not operator.process.running:
        operator.start()  # as its pod would be
    place.empty()


def random_faults(seed: int) -> Rule:
    """Choose faults by the number of the call; a read is never answered with 409."""
    rng = random.Random(seed)
    by_number = {number: rng.choice(list(RequestFault)) for number in range(1, 5000) if rng.random() < SHARE}

    def rule(call: Call) -> RequestFault | None:
        fault = None if call.watch else by_number.get(call.number)
        return None if fault is RequestFault.CONFLICT and not call.method.startswith("P") else fault

    return rule


@pytest.mark.parametrize("seed", [1])
def test_faults_of_calls_do_not_change_the_outcome(
    shop: Namespace, kafka: Stock, proxy: KubernetesProxy, operator: StewardOperator, seed: int
) -> None:
    """O1, O3: cut, lost, doubled, delayed, 409, 429, 500, 503, and a kill -9: created, changed, moved, deleted, and then at rest."""
    names = [f"faults-{seed}-{index}" for index in range(8)]
    proxy.rule = random_faults(seed)
    for name in names:
        shop.apply(raw_topic(name, partitions=2, replicationFactor=1, config={"retention.ms": "60000"}))
    for name in names:
        shop.until("Topic", name, "True")
    operator.kill()
    operator.start()
    for name in names[:4]:
        shop.apply(raw_topic(name, partitions=3, replicationFactor=1))
    shop.apply(raw_reassignment(plan=raw_plan(names[7], p0=[2], p1=[3])))
    for name in names[4:7]:
        shop.delete("Topic", name)

    shop.until("Reassignment", "move", "True")
    for name in names[4:7]:
        shop.until_gone("Topic", name)
    for name in names[:4]:
        wait_until(
            lambda name=name: len(kafka.replicas(name)) == 3 and kafka.config(name) == {},
            timeout_s=PATIENCE_S,
            what=f"{name} is as declared",
        )
        shop.until("Topic", name, "True")
    assert kafka.replicas(names[7]) == [[2], [3]]
    wait_until(lambda: not any(map(kafka.exists, names[4:7])), timeout_s=PATIENCE_S, what="deleted topics are gone")
    assert sum(proxy.injected.values()) > len(names), f"too few calls: {proxy.injected}"
    proxy.rule = None
    _rests(shop, proxy)


def _rests(shop: Namespace, proxy: KubernetesProxy) -> None:
    """After two resyncs without a fault two more write nothing, but for the one status that follows the next count of partitions."""

    def lists() -> int:
        return sum(call.method == "GET" and "/topics?" in call.path and not call.watch for call in proxy.calls)

    for _ in range(2):
        before, calls = lists(), len(proxy.calls)
        wait_until(lambda before=before: lists() >= before + 2, timeout_s=PATIENCE_S, what="two resyncs")
    writes: list[Call] = [call for call in proxy.calls[calls:] if call.method != "GET"]
    counted = [call for call in writes if "/clusters/main/status?" in call.path]
    assert [call for call in writes if call not in counted] == []
    assert len(counted) <= 1, f"partitions are counted every {CLUSTER_METRICS_EVERY_S:g} s: {counted}"
    assert shop.ready("Cluster", "main")[:1] == ("True",)
