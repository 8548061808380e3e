"""UpdateFeatures, versions 0 and 1: the cluster's finalized features (KIP-584, KIP-778).

Version 0 says by a flag what version 1 says by a type, and cannot ask for a validation alone. Unlike Kafka's controller in ZooKeeper mode
we heed a wish to validate only.

Source: KafkaApis.handleUpdateFeatures, UpdateFeaturesRequest. Leaves out what is legal (cluster.features), and the znode (configs).
"""

from controller_core.rules.features import FeatureUpdate, UpgradeType
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import error_fields
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.store import FeatureStore
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body

TYPES_FROM = 1


async def update_features(
    features: FeatureStore | None, active: ActiveController, context: RequestContext, body: Body
) -> Body:
    """Update features one by one, in one write. Raises RelayInstead where they are not kept here."""
    if features is None:
        raise RelayInstead("features are not kept here")
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
    """Read the updates; of two of one feature the first counts: Kafka reads them into a map that keeps it."""
    found: dict[str, FeatureUpdate] = {}
    for each in body["feature_updates"]:
        update = FeatureUpdate(each["feature"], each["max_version_level"], _upgrade_type(context, each))
        found.setdefault(update.feature, update)
    return list(found.values())


def _upgrade_type(context: RequestContext, each: Body) -> UpgradeType:
    if context.api_version < TYPES_FROM:
        return UpgradeType.SAFE_DOWNGRADE if each["allow_downgrade"] else UpgradeType.UPGRADE
    code = each["upgrade_type"]
    return UpgradeType(code) if code in list(UpgradeType) else UpgradeType.UNKNOWN


def update_features_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer at the top, with no feature."""
    return {**error_fields(failure), "results": []}
