"""AlterConfigs (versions 0 to 2) and IncrementalAlterConfigs (0 and 1) in KRaft mode. Source: ControllerApis.

The caller needs ALTER_CONFIGS on each topic or group, and on the cluster for a broker or client metrics; CLUSTER_ACTION for the levels of this
controller's loggers, which each controller changes, active or not. Resources that it may not change are refused, the others change.
"""

from collections.abc import Callable
from functools import partial

from controller_core.metadata.config_alterations import alter_configs
from controller_core.model.quorum_events import ChangeConfigs
from controller_core.shell.admin.responses import Outcome
from controller_core.shell.kraft.admin.describe_configs import current_settings
from controller_core.shell.kraft.port import MetadataController
from kafka_metadata.records import ResourceType as ConfigResourceType
from kafka_node.authorization import acl, guard, needs
from kafka_node.configs.alterations import resource_key
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_node.logger_levels import alter_with_loggers
from kafka_node.outcomes import duplicates, error_fields
from kafka_wire import Body, ErrorCode, Failure

_JUDGED_AS = {ConfigResourceType.TOPIC: acl.ResourceType.TOPIC, ConfigResourceType.GROUP: acl.ResourceType.GROUP}
"""Types whose resources have ACLs of their own; all others belong to the cluster."""


class ConfigApis:
    """The handlers. `file` has the settings of the properties file; `asking` returns the judge of a caller's operations."""

    def __init__(
        self, controller: MetadataController, file: Settings, asking: Callable[[RequestContext], guard.Ask]
    ) -> None:
        self._controller = controller
        self._file = file
        self._asking = asking

    async def alter(self, context: RequestContext, body: Body) -> Body:
        """Replace all configs of each resource."""
        return await self._change(context, body, incremental=False)

    async def alter_incrementally(self, context: RequestContext, body: Body) -> Body:
        """Change some configs of each resource, and levels of loggers."""
        allows = self._asking(context)
        return await alter_with_loggers(
            self._file.node_id,
            body,
            lambda: allows(acl.Operation.CLUSTER_ACTION, acl.ResourceType.CLUSTER, acl.CLUSTER_NAME),
            partial(self._change, context, incremental=True),
        )

    async def _change(self, context: RequestContext, body: Body, *, incremental: bool) -> Body:
        allows = self._asking(context)
        repeated = duplicates(map(resource_key, body["resources"]))
        judged = [_judged(resource, repeated, allows) for resource in body["resources"]]
        image = self._controller.image
        settings = current_settings(self._file, image)
        decided = alter_configs(image, settings, judged, incremental=incremental, is_forwarded=context.is_forwarded)
        if decided.changes and not body["validate_only"]:
            # Nothing is awaited between the image and the decision on the event, so no other change is lost.
            await self._controller.submit(ChangeConfigs(decided.changes))
        else:
            await self._controller.read()
        return _response(body, decided.outcomes)


def _judged(resource: Body, repeated: frozenset[str], allows: guard.Ask) -> Body | Failure:
    kind = resource["resource_type"]
    if kind not in set(ConfigResourceType):
        return Failure(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")
    if kind == ConfigResourceType.BROKER_LOGGER:
        return Failure(ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")
    if resource_key(resource) in repeated:
        return Failure(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
    of = _JUDGED_AS.get(kind, acl.ResourceType.CLUSTER)
    name = acl.CLUSTER_NAME if of is acl.ResourceType.CLUSTER else resource["resource_name"]
    return (
        resource if allows(acl.Operation.ALTER_CONFIGS, of, name) else Failure(needs.CODES[of], needs.CODES[of].message)
    )


def _response(body: Body, outcomes: tuple[Outcome, ...]) -> Body:
    return {
        "responses": [
            {
                **error_fields(outcome),
                "resource_type": resource["resource_type"],
                "resource_name": resource["resource_name"],
            }
            for resource, outcome in zip(body["resources"], outcomes, strict=True)
        ]
    }


def refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every resource with the same error."""
    return _response(body, (failure,) * len(body["resources"]))
