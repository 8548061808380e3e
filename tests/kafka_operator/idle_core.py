"""A core with the kinds of both operators that runs nothing: for tests of its parts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kafka_operator.engine.core import build_core
from kafka_operator.metrics import KafkaMetrics
from reconciler.engine.core import Core
from reconciler.names import NamespacedName
from spark_operator.engine.applications import SparkPorts
from tests.kafka_operator.makers import NOW
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate


def idle_core(
    kube: FakeKube | None = None,
    metrics: KafkaMetrics | None = None,
    *,
    serves: Callable[[NamespacedName], bool] = lambda _: True,
    spark: SparkPorts | None = None,
) -> Core:
    """Compose a core over an API server; no Kafka cluster is reachable."""
    no_connection: Any = None
    return build_core(
        kube or FakeKube(Gate()),
        no_connection,
        metrics or KafkaMetrics(),
        prometheus=no_connection,
        namespaces=(),
        resync_interval_s=100,
        now=lambda: NOW,
        clock=lambda: 0.0,
        rng=random.Random(1),
        serves=serves,
        spark=spark,
    )
