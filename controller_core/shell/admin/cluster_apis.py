"""APIs of the whole cluster: DescribeCluster and UpdateFeatures; the nodes of the cluster on one listener.

The nodes are the live brokers and the controller, which is listed as one of them. A node without the listener of the request is
omitted: its address on another listener may not be reachable for the client. DescribeCluster has versions 0 and 1 (KIP-700).

UpdateFeatures, versions 0 and 1, changes the finalized features of the cluster (KIP-584, KIP-778). Version 0 has a flag where version 1
has an upgrade type, and has no `validate_only`. Kafka's controller ignores `validate_only` in ZooKeeper mode; this controller does not.
The rules of valid updates are in `rules.features`.

Source: ZkMetadataCache.getAliveBrokerNodes, AuthHelper.computeDescribeClusterResponse, KafkaApis.handleUpdateFeatures,
UpdateFeaturesRequest.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from controller_core.model import NO_EPOCH, Broker, Cluster
from controller_core.rules.features import FeatureUpdate, UpgradeType
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.responses import error_fields
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.store import FeatureStore
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure

BROKER_ENDPOINT = 1
"""Endpoint type of this process. Controllers of a KRaft quorum have another type (KIP-919)."""
ENDPOINT_TYPES = {BROKER_ENDPOINT: "BROKER", 2: "CONTROLLER"}


@dataclass(frozen=True, slots=True)
class Node:
    """One element of the list of brokers."""

    id: int
    host: str
    port: int
    rack: str | None


def nodes(active: ActiveController, listener: str) -> Iterator[Node]:
    """List the registered brokers, including those in controlled shutdown, and the controller as the last node."""
    brokers = [active.cluster.brokers[broker_id] for broker_id in sorted(active.cluster.brokers)]
    for broker in [*brokers, controller_as_broker(active)]:
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield Node(broker.id, endpoint.host, endpoint.port, broker.rack)


def controller_as_broker(active: ActiveController) -> Broker:
    """Describe the controller as a broker, which is how clients find it (protocol notes, Z20, Z24).

    If brokers have racks, it has the first of them: tools refuse to place replicas if one broker has no rack.
    """
    cluster = active.cluster
    racks = (cluster.brokers[broker_id].rack for broker_id in sorted(cluster.brokers))
    rack = next((rack for rack in racks if rack is not None), None)
    return Broker(cluster.controller_id, NO_EPOCH, tuple(active.advertised()), rack)


def reachable(cluster: Cluster, listener: str) -> frozenset[int]:
    """Return the ids of the registered brokers that have a listener."""
    return frozenset(broker.id for broker in cluster.brokers.values() if broker.endpoint(listener) is not None)


async def describe_cluster(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Answer from the current state of the cluster."""
    refused = refuse_endpoint_type(body)
    if refused is not None:
        return describe_cluster_refused(context, body, refused)
    listed = list(nodes(active, context.listener))
    controller_id = active.cluster.controller_id
    wants_operations = body["include_cluster_authorized_operations"]
    operations = (
        {"cluster_authorized_operations": authorized_operations(ResourceType.CLUSTER)} if wants_operations else {}
    )
    return {
        **operations,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "endpoint_type": BROKER_ENDPOINT,
        "cluster_id": active.cluster_id,
        # Clients take the controller's address from the list, so its id is -1 if it is not listed.
        "controller_id": controller_id if any(node.id == controller_id for node in listed) else -1,
        "brokers": [{"broker_id": node.id, "host": node.host, "port": node.port, "rack": node.rack} for node in listed],
    }


def refuse_endpoint_type(body: Body) -> Failure | None:
    """Refuse to list other endpoints than those of brokers."""
    endpoint_type = body["endpoint_type"]
    if endpoint_type == BROKER_ENDPOINT:
        return None
    if endpoint_type not in ENDPOINT_TYPES:
        return Failure(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}")
    wanted = ENDPOINT_TYPES[endpoint_type]
    message = f"The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type {wanted}"
    return Failure(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)


def describe_cluster_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error only."""
    return {**error_fields(failure), "cluster_id": "", "controller_id": -1, "brokers": []}


TYPES_FROM = 1
"""First version with upgrade types."""


async def update_features(
    features: FeatureStore | None, active: ActiveController, context: RequestContext, body: Body
) -> Body:
    """Validate each feature and write the valid updates at once. Raises RelayInstead if there is no store."""
    if features is None:
        raise RelayInstead("features are not stored by this process")
    outcomes = await features.update(
        feature_updates(context, body),
        controller_epoch=active.cluster.controller_epoch,
        brokers=tuple(sorted(active.cluster.may_lead())),
        validate_only=body["validate_only"],
    )
    if isinstance(outcomes, Failure):
        return update_features_refused(context, body, outcomes)
    results = [{"feature": feature, **error_fields(outcome)} for feature, outcome in outcomes.items()]
    return {**error_fields(None), "results": results}


def feature_updates(context: RequestContext, body: Body) -> list[FeatureUpdate]:
    """Read the updates; of two for a feature the first one is used, as in Kafka."""
    found: dict[str, FeatureUpdate] = {}
    for entry in body["feature_updates"]:
        update = FeatureUpdate(entry["feature"], entry["max_version_level"], _upgrade_type(context, entry))
        found.setdefault(update.feature, update)
    return list(found.values())


def _upgrade_type(context: RequestContext, entry: Body) -> UpgradeType:
    if context.api_version < TYPES_FROM:
        return UpgradeType.SAFE_DOWNGRADE if entry["allow_downgrade"] else UpgradeType.UPGRADE
    code = entry["upgrade_type"]
    return UpgradeType(code) if code in list(UpgradeType) else UpgradeType.UNKNOWN


def update_features_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error and no features."""
    return {**error_fields(failure), "results": []}
