"""The live brokers, their racks and sizes of disks, from Kafka: samples do not have them.

The Java client of Spark's Kafka connector asks, with the same settings for access. Steward's controller is in the list of brokers
too, but is not a broker. Brokers before 3.3 do not return the size of their disks (KIP-827). Values of --brokers take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from balance_analytics.jobs.java_admin import admin_client, wait
from balance_analytics.jobs.problems import LeftOuts, errors_about
from balance_analytics.jobs.samples import Samples, address
from balance_analytics.study.columns import BrokerFacts

PROCESS_ROLES, CONTROLLER_ALONE = "process.roles", "controller"


@dataclass(frozen=True, slots=True)
class Brokers:
    """`facts` of the brokers that are known; `alive` is None if no cluster could be asked."""

    facts: BrokerFacts
    alive: frozenset[int] | None = None


def brokers_of(spark: SparkSession, samples: Samples | None, configured: BrokerFacts, left_out: LeftOuts) -> Brokers:
    """Ask the cluster that holds the samples; if they are in Parquet, return what is configured. Raises `AnalyticsError`."""
    if samples is None or not samples.in_kafka:
        return Brokers(configured)
    servers, _ = address(samples.place)
    with errors_about(samples.place, "brokers"):
        racks, sizes = _asked(spark, {**samples.options, "bootstrap.servers": servers}, left_out)
    named = {broker: rack for broker, rack in racks.items() if rack is not None}
    return Brokers(BrokerFacts({**named, **configured.racks}, {**sizes, **configured.capacities}), frozenset(racks))


def _asked(
    spark: SparkSession, settings: Mapping[str, str], left_out: LeftOuts
) -> tuple[dict[int, str | None], dict[int, int]]:
    """Return racks and bytes of disk by broker, without a controller that is in the list of brokers."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Python has no other way to the Java client
    with admin_client(jvm, settings) as admin:
        cluster = admin.describeCluster()
        racks = {int(node.id()): node.rack() for node in jvm.java.util.ArrayList(wait(jvm, cluster.nodes()))}
        controller = wait(jvm, cluster.controller())
        if controller is not None and not _holds_data(jvm, admin, int(controller.id()), left_out):
            racks.pop(int(controller.id()), None)
        return racks, _sizes(jvm, admin, sorted(racks), left_out)


def _holds_data(jvm: Any, admin: Any, node: int, left_out: LeftOuts) -> bool:
    """Return whether the controller is a broker too: the `process.roles` of Steward's controller is `controller`.

    A controller that does not return its config gets no partitions, since moves to a node without disks would never complete.
    """
    kinds = jvm.org.apache.kafka.common.config.ConfigResource.Type
    resource = jvm.org.apache.kafka.common.config.ConfigResource(kinds.BROKER, str(node))
    asked = jvm.java.util.ArrayList()
    asked.add(resource)
    try:
        config = jvm.java.util.HashMap(wait(jvm, admin.describeConfigs(asked).all())).get(resource)
    except Py4JError:
        remedy = "allow DESCRIBE_CONFIGS on the cluster; until then nothing is moved to it"
        left_out.add(f"whether node {node}, the controller, is a broker: it did not return its config", 1, remedy)
        return False
    roles = config.get(PROCESS_ROLES)
    return roles is None or (roles.value() or "").strip() != CONTROLLER_ALONE


def _sizes(jvm: Any, admin: Any, brokers: Sequence[int], left_out: LeftOuts) -> dict[int, int]:
    """Return the bytes of the disks of the brokers that return them."""
    ids = jvm.java.util.ArrayList()
    for broker in brokers:
        ids.add(broker)
    asked = jvm.java.util.HashMap(admin.describeLogDirs(ids).descriptions())
    sizes: dict[int, int] = {}
    for broker in brokers:
        try:
            sizes[broker] = _size(jvm.java.util.HashMap(wait(jvm, asked[broker])))
        except Py4JError:
            remedy = "check that they are alive, allow DESCRIBE on the cluster, or name the sizes in --brokers"
            left_out.add("brokers that did not return the size of their disks", 1, remedy)
    return {broker: size for broker, size in sizes.items() if size}


def _size(folders: Any) -> int:
    """Return the bytes of all log folders' volumes; 0 if the size of one is missing (Kafka before 3.3)."""
    totals = [folders[path].totalBytes() for path in folders]
    return sum(int(total.getAsLong()) for total in totals) if all(total.isPresent() for total in totals) else 0
