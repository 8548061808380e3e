"""The table of what the controller answers itself, for the front to dispatch by.

    request ──► is there a tenure? ──► its API: event, submit, response
                     │ no                     │ the tenure is lost, or too many wait
                     └────────► refused, in the response's own shape ◄┘   (about the cluster: a broker answers)

Leaves out ApiVersions (the front's own), and unexpected exceptions: the front logs these and ends the connection.
"""

# MERGED controller_core.shell.admin.handlers: """Requests about the cluster that a client sends to a process which is not the controller.
# MERGED controller_core.shell.admin.handlers:
# MERGED controller_core.shell.admin.handlers: Brokers list the controller's id as a node, also while its process has been restarted and waits for the session of its predecessor
# MERGED controller_core.shell.admin.handlers: to end. An answer without brokers would tell a client that the cluster has none, so a live broker answers in place of this process.
# MERGED controller_core.shell.admin.handlers: Leaves out the requests that only a controller can carry out: they are refused with NOT_CONTROLLER.
# MERGED controller_core.shell.admin.handlers: """
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random, SystemRandom

from controller_core.model.cluster import Cluster
from controller_core.shell.active import ActiveController, OverloadedError, TenureLostError, TopicDefault
from controller_core.shell.admin import broker_requests, own_node, reassignments
from controller_core.shell.admin.acls import AclService, acl_handlers
from controller_core.shell.admin.client_quotas import quota_handlers
from controller_core.shell.admin.cluster_nodes import describe_cluster, describe_cluster_refused
from controller_core.shell.admin.create_partitions import create_partitions, create_partitions_refused
from controller_core.shell.admin.create_topics import create_topics, create_topics_refused
from controller_core.shell.admin.delete_topics import delete_topics, delete_topics_refused
from controller_core.shell.admin.elections import elect_leaders, elect_leaders_refused
from controller_core.shell.admin.features import update_features, update_features_refused
from controller_core.shell.admin.metadata import metadata, metadata_refused
from controller_core.shell.admin.metadata_encoder import MetadataEncoder
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from controller_core.shell.admin.outcomes import NOT_CONTROLLER, OVERLOADED
from controller_core.shell.admin.scram import scram_handlers
from controller_core.shell.admin.topic_description import describe_topic_partitions, describe_topic_partitions_refused
from controller_core.shell.front.handler import RelayInstead, RequestHandler
from controller_core.shell.store import EntityConfigStore, FeatureStore
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.net.outflow import never
from kafka_wire.net.server import CloseConnection

Tenure = Callable[[], ActiveController | None]
"""Gives the controller that holds the cluster now; None while this process does not."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API: how it is answered, and how its response says that nothing was done."""

    answer: Callable[[ActiveController, RequestContext, Body], Awaitable[Body | EncodedBody]]
    refused: Callable[[RequestContext, Body, Failure], Body]


async def at_once() -> None:
    """Wait for nothing."""


def no_brokers() -> int:
    """Count no registered broker."""
    return 0


def handlers(
    active: Tenure,
    settled: Callable[[], Awaitable[None]] = at_once,
    *,
    random: Random | None = None,
    topic_defaults: Callable[[], Mapping[str, TopicDefault]] = dict,
    acls: AclService | None = None,
    configs: EntityConfigStore | None = None,
    features: FeatureStore | None = None,
    is_urgent: Callable[[], bool] = never,
    registered: Callable[[], int | None] = no_brokers,
) -> dict[ApiKey, RequestHandler]:
    """Make the handlers of all APIs that the controller answers itself, for every listener alike.

    `settled` waits while a tenure is about to begin. `random` draws topic ids and where placement starts; by default it is the system's, so that no two processes draw the
    same ids. `topic_defaults` gives what the brokers set as defaults of topic configs, by the topic config's name; what is
    absent has Kafka's own default. Only the configs in CreateTopics' answer depend on it. `acls` are those that an authorizer
    judges by; None: there is no authorizer. `configs` is where SCRAM credentials and quotas are kept,
    `features` where the cluster's features are; None: a broker is asked. `is_urgent` reports whether the controller has events to
    process, which go before long computations for clients. `registered` counts the registered brokers for a process that is not
    the controller; it returns None while they have not been read.
    A handler raises RelayInstead where a broker is to answer, and what it did not expect.
    """
    encoder = MetadataEncoder(is_urgent)
    table = apis(random or SystemRandom(), topic_defaults, features, MutationQuotas(configs), encoder)
    of_tenure: dict[ApiKey, RequestHandler] = {
        key: partial(answer, key, api, active, settled, registered) for key, api in table.items()
    }

    async def is_controller() -> bool:
        await settled()
        return active() is not None

    def cluster() -> Cluster | None:
        tenure = active()
        return None if tenure is None else tenure.cluster

    return {
        **of_tenure,
        **own_node.own_node_handlers(cluster),
        **acl_handlers(acls),
        **scram_handlers(configs, is_controller),
        **quota_handlers(configs),
    }


def apis(
    random: Random,
    topic_defaults: Callable[[], Mapping[str, TopicDefault]],
    features: FeatureStore | None,
    quotas: MutationQuotas,
    encoder: MetadataEncoder,
) -> Mapping[ApiKey, Api]:
    """List the APIs."""

    async def create_topics_drawn(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await create_topics(active, context, body, random, topic_defaults(), quotas)

    async def create_partitions_drawn(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await create_partitions(active, context, body, random, quotas)

    async def delete_topics_within_quota(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await delete_topics(active, context, body, quotas)

    return {
        ApiKey.METADATA: Api(partial(metadata, encoder), metadata_refused),
        ApiKey.DESCRIBE_CLUSTER: Api(describe_cluster, describe_cluster_refused),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(describe_topic_partitions, describe_topic_partitions_refused),
        ApiKey.CREATE_TOPICS: Api(create_topics_drawn, create_topics_refused),
        ApiKey.DELETE_TOPICS: Api(delete_topics_within_quota, delete_topics_refused),
        ApiKey.CREATE_PARTITIONS: Api(create_partitions_drawn, create_partitions_refused),
        ApiKey.ELECT_LEADERS: Api(elect_leaders, elect_leaders_refused),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(
            reassignments.alter_reassignments, reassignments.alter_reassignments_refused
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(
            reassignments.list_reassignments, reassignments.list_reassignments_refused
        ),
        ApiKey.DESCRIBE_CONFIGS: Api(own_node.describe_configs, own_node.relay_refused),
        ApiKey.ALTER_CONFIGS: Api(own_node.alter_configs, own_node.relay_refused),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(own_node.incremental_alter_configs, own_node.relay_refused),
        ApiKey.UPDATE_FEATURES: Api(partial(update_features, features), update_features_refused),
        ApiKey.UNREGISTER_BROKER: Api(broker_requests.unregister_broker, broker_requests.unregister_broker_refused),
        ApiKey.ALTER_PARTITION: Api(broker_requests.alter_partition, broker_requests.alter_partition_refused),
        ApiKey.CONTROLLED_SHUTDOWN: Api(
            broker_requests.controlled_shutdown, broker_requests.controlled_shutdown_refused
        ),
        ApiKey.ALLOCATE_PRODUCER_IDS: Api(
            broker_requests.allocate_producer_ids, broker_requests.allocate_producer_ids_refused
        ),
    }


async def answer(
    key: ApiKey,
    api: Api,
    active: Tenure,
    settled: Callable[[], Awaitable[None]],
    registered: Callable[[], int | None],
    context: RequestContext,
    body: Body,
) -> Body | EncodedBody:
    """Answer one request, or refuse it in its response's shape. Raises RelayInstead, CloseConnection."""
    await settled()
    tenure = active()
    if tenure is None:
        leave_to_brokers(key, registered())
        return api.refused(context, body, NOT_CONTROLLER)
    try:
        return await api.answer(tenure, context, body)
    except TenureLostError:
        return api.refused(context, body, NOT_CONTROLLER)
    except OverloadedError:
        return api.refused(context, body, OVERLOADED)


ANSWERED_BY_BROKERS = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER})
"""Requests that every broker answers about the whole cluster."""
OF_CONTROLLERS_ONLY = frozenset({ApiKey.DESCRIBE_TOPIC_PARTITIONS})
"""Requests about the cluster that brokers in ZooKeeper mode do not serve."""

WHY = "this process is not the controller, and brokers know the cluster"


def leave_to_brokers(key: ApiKey, broker_count: int | None) -> None:
    """Raise RelayInstead or CloseConnection where this process should not answer a request by itself.

    `broker_count` is the number of registered brokers, None while they have not been read. With none at all, an answer
    without brokers is true.
    """
    if broker_count == 0:
        return
    if key in ANSWERED_BY_BROKERS:
        raise RelayInstead(WHY)
    if key in OF_CONTROLLERS_ONLY:
        raise CloseConnection(WHY)
