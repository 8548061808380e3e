"""UpdateFeatures, versions 0 and 1: finalized features of the cluster (KIP-584, KIP-778).

Version 0 has a flag where version 1 has an upgrade type, and has no `validate_only`. Kafka's controller ignores `validate_only` in
ZooKeeper mode; this controller does not. The rules of valid updates are in `rules.features`.

Source: KafkaApis.handleUpdateFeatures, UpdateFeaturesRequest.
"""

from controller_core.rules.features import FeatureUpdate, UpgradeType
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import error_fields
from controller_core.shell.front.handler import RelayInstead
from controller_core.shell.store import FeatureStore
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import Failure

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
    """Answer with a top-level error and no features."""
    return {**error_fields(failure), "results": []}
