"""Composition of the engine, the same in production and in tests; tests pass other ports, clocks and random sources."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import Connect
from kafka_operator.engine.registration import register_kafka
from kafka_operator.kube.pods_port import PodKube
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.prometheus.port import Prometheus
from reconciler.engine.core import Core
from reconciler.engine.loop import LINGER_S
from reconciler.engine.queue import CAPACITY
from reconciler.kube.port import Kube
from reconciler.names import NamespacedName
from spark_operator.engine.applications import SparkPorts
from spark_operator.engine.registration import register_spark


def build_core(
    kube: Kube,
    connect: Connect,
    metrics: KafkaMetrics,
    *,
    prometheus: Prometheus,
    namespaces: Sequence[str],
    resync_interval_s: float,
    now: Callable[[], datetime],
    clock: Callable[[], float],
    rng: random.Random,
    linger_s: float = LINGER_S,
    capacity: int = CAPACITY,
    pods: PodKube | None = None,
    drain: bool = False,
    serves: Callable[[NamespacedName], bool] = lambda _: True,
    spark: SparkPorts | None = None,
    aws_identity_namespaces: Collection[str] = (),
) -> Core:
    """Compose the engine. Broker pods are reconciled only with `pods`, node drains only with `drain`, SparkApplications only with `spark`.

    All resources are cached; only those of Clusters for which `serves` is true are reconciled.
    """
    cache = Cache()
    core = Core(
        kube,
        cache,
        metrics,
        namespaces=namespaces,
        resync_interval_s=resync_interval_s,
        clock=clock,
        rng=rng,
        linger_s=linger_s,
        capacity=capacity,
        serves=serves,
    )
    register_kafka(
        core,
        kube,
        cache,
        connect,
        metrics,
        prometheus,
        now=now,
        clock=clock,
        rng=rng,
        pods=pods,
        drain=drain,
        aws_identity_namespaces=aws_identity_namespaces,
    )
    if spark is not None:
        register_spark(core, spark, now=now, clock=clock)
    return core
