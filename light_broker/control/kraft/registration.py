"""Registration of a broker with the active controller: what it is, which features it has, and its log directories. Pure.

Source: BrokerLifecycleManager and BrokerFeatures of Kafka, ClusterControlManager.registerBroker.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from kafka_metadata.metadata_versions import (
    ELR_VERSION,
    KRAFT_VERSION,
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MINIMUM_VERSION,
)
from kafka_metadata.records import SECURITY_PROTOCOL_IDS
from kafka_node.security.settings import SecurityProtocol
from kafka_node.versions import VersionRange
from kafka_wire import Body
from light_broker.core.metadata_view import NO_EPOCH, BrokerView

FEATURES: Mapping[str, VersionRange] = {
    METADATA_VERSION: (MINIMUM_VERSION, LATEST_PRODUCTION),
    KRAFT_VERSION: (0, 1),
    ELR_VERSION: (0, 1),
    "group.version": (0, 0),
    "transaction.version": (0, 0),
}
"""Levels that this broker has. It has no share groups, no streams groups, and of groups only the classic protocol; controllers refuse a
broker that lacks the level of a feature in effect."""


def registration_body(
    own: BrokerView,
    protocols: Mapping[str, SecurityProtocol],
    *,
    cluster_id: str,
    incarnation_id: UUID,
    directories: Iterable[UUID],
    previous_epoch: int | None,
) -> Body:
    """Return the request. `previous_epoch` is that of the last clean shutdown: without it replicas may have lost records (KIP-966)."""
    return {
        "broker_id": own.id,
        "cluster_id": cluster_id,
        "incarnation_id": incarnation_id,
        "listeners": [
            {
                "name": listener,
                "host": endpoint.host,
                "port": endpoint.port,
                "security_protocol": SECURITY_PROTOCOL_IDS[protocols[listener].value],
            }
            for listener, endpoint in own.endpoints.items()
        ],
        "features": [
            {"name": name, "min_supported_version": lowest, "max_supported_version": highest}
            for name, (lowest, highest) in FEATURES.items()
        ],
        "rack": own.rack,
        "log_dirs": sorted(directories),
        "previous_broker_epoch": NO_EPOCH if previous_epoch is None else previous_epoch,
    }


def feature_problem(levels: Mapping[str, int]) -> str | None:
    """Return why a cluster with these feature levels refuses this broker, and what to do; None: it does not.

    >>> feature_problem({"metadata.version": 30, "share.version": 1})
    'The cluster has share.version 1, of which this broker has 0 to 0. Run `kafka-features.sh downgrade --feature share.version=0`.'
    """
    too_high = {
        name: (level, FEATURES.get(name, (0, 0)))
        for name, level in sorted(levels.items())
        if not FEATURES.get(name, (0, 0))[0] <= level <= FEATURES.get(name, (0, 0))[1]
    }
    if not too_high:
        return None
    levels_text = ", ".join(
        f"{name} {level}, of which this broker has {low} to {high}" for name, (level, (low, high)) in too_high.items()
    )
    options = " ".join(f"--feature {name}={high}" for name, (_, (_, high)) in too_high.items())
    return f"The cluster has {levels_text}. Run `kafka-features.sh downgrade {options}`."
