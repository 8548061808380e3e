"""What is asked of the controller as the broker that it is listed as: its own configuration, its log directories.

Clients and tools ask every broker they find (kafka-reassign-partitions takes throttles off all of them, kafka-log-dirs adds up what
all of them hold). Relayed, such a request would be refused by the broker it reaches, or answered with that broker's own.

Requests about anything else, topics above all, go on to a broker: it knows its defaults and judges keys and values.
Leaves out storing broker configurations: a controller holds no data, so a throttle has nothing to slow down.
"""

from controller_core.shell.active import ActiveController
from controller_core.shell.front.context import RelayInstead, RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

BROKER_RESOURCE = 4
"""ConfigResource.Type.BROKER."""
STATIC_BROKER_CONFIG = 4
"""ConfigSource.STATIC_BROKER_CONFIG."""
DELETE = 1
"""AlterConfigOp.OpType.DELETE."""
STRING = 2
"""ConfigEntry.ConfigType.STRING."""

CONTROLLER_ALONE = "controller"
"""As a KRaft node says that it holds no data (KIP-631): by this, who counts brokers leaves the controller out."""

NO_DATA = "(a controller holds no data)"
"""In the place of a log directory's path."""

THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Configurations that tools set on brokers of a move (KIP-73): taken without effect."""


async def describe_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Answer for the controller's own broker resource. Raises RelayInstead for a request about anything else."""
    _check_all_own(active, body["resources"])
    return {"results": [_described(active, resource) for resource in body["resources"]]}


async def incremental_alter_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Take throttles, and the removal of anything; refuse to set the rest. Raises RelayInstead as above."""
    _check_all_own(active, body["resources"])
    responses = []
    for resource in body["resources"]:
        setting = [config["name"] for config in resource["configs"] if config["config_operation"] != DELETE]
        responses.append(_altered(resource, setting))
    return {"responses": responses}


async def alter_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Do the same for AlterConfigs, of before KIP-339, where all that is not named is removed. Raises RelayInstead as above.

    A broker alters topics: it knows what it would fall back to, and has its own policy.
    """
    _check_all_own(active, body["resources"])
    return {
        "responses": [
            _altered(resource, [config["name"] for config in resource["configs"]]) for resource in body["resources"]
        ]
    }


async def describe_log_dirs(_active: ActiveController, _: RequestContext, _body: Body) -> Body:
    """Answer with one directory that holds nothing: clients take no directory at all for a refusal."""
    return {"error_code": ErrorCode.NONE, "results": [{"error_code": ErrorCode.NONE, "log_dir": NO_DATA, "topics": []}]}


def relay_refused(*_: object) -> Body:
    """Leave the request to a broker: these are no controller's APIs that NOT_CONTROLLER would mean something for."""
    raise RelayInstead("no controller is needed for this")


def _check_all_own(active: ActiveController, resources: list[Body]) -> None:
    own = str(active.cluster.controller_id)
    if not resources or any(
        resource["resource_type"] != BROKER_RESOURCE or resource["resource_name"] != own for resource in resources
    ):
        raise RelayInstead("it is not about the controller as a broker")


def _described(active: ActiveController, resource: Body) -> Body:
    endpoints = ",".join(f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in active.advertised())
    # `process.roles` tells whoever counts brokers that this one holds no data (KIP-631).
    known = {
        "broker.id": str(active.cluster.controller_id),
        "process.roles": "controller",
        "advertised.listeners": endpoints,
    }
    asked = resource["configuration_keys"]
    return {
        "error_code": ErrorCode.NONE,
        "resource_type": resource["resource_type"],
        "resource_name": resource["resource_name"],
        "configs": [
            {
                "name": name,
                "value": value,
                "read_only": True,
                "config_source": STATIC_BROKER_CONFIG,
                "is_sensitive": False,
                "config_type": STRING,
            }
            for name, value in known.items()
            if asked is None or name in asked
        ],
    }


def _altered(resource: Body, setting: list[str]) -> Body:
    refused = [name for name in setting if name not in THROTTLES]
    words = f"This node is a controller and holds no data: {', '.join(refused)} cannot be set on it."
    return {
        "error_code": ErrorCode.INVALID_CONFIG if refused else ErrorCode.NONE,
        "error_message": words if refused else None,
        "resource_type": resource["resource_type"],
        "resource_name": resource["resource_name"],
    }
