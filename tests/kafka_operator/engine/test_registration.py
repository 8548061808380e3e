"""Registration: each operator registers all of its kinds."""

from __future__ import annotations

from kafka_operator import kinds
from spark_operator.kinds import KINDS as SPARK_KINDS
from tests.kafka_operator.idle_core import idle_core
from tests.spark_operator.makers import SparkWorld


def test_without_spark_only_the_kinds_of_the_kafka_operator_are_served() -> None:
    """Only their definitions must be installed; Clusters are listed first, so that the others find theirs."""
    assert tuple(idle_core().kinds) == kinds.KINDS


def test_with_spark_both_operators_register_all_of_their_kinds() -> None:
    """The rights that are checked at the start are those of the same kinds."""
    world = SparkWorld()

    assert tuple(idle_core(world.kube, spark=world.spark).kinds) == (*kinds.KINDS, *SPARK_KINDS)
