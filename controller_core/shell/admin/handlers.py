"""Table of the handlers for requests that the controller answers itself.

    request ──► active term? ──► handler of the API: event, submit, response
                     │ no                │ the term ended, or the controller is overloaded
                     └─────► error response in the API's format ◄┘

A process that is not the controller answers NOT_CONTROLLER to requests that only a controller can process. Requests about the cluster
are relayed to a live broker instead, or close the connection if no broker answers them: brokers list the controller's id as a node even
while its process waits for its previous session to end, and an answer without brokers would mean to a client that the cluster has none.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random, SystemRandom

from controller_core.model import Cluster
from controller_core.shell.active import (
    ActiveController,
    OverloadedError,
    RefusedWriteError,
    TermEndedError,
    TopicDefault,
)
from controller_core.shell.admin import (
    broker_requests,
    client_quotas,
    cluster_apis,
    controlled_shutdown,
    controller_node,
    delete_topics,
    metadata,
    metadata_encoder,
    mutation_quotas,
    partitions,
    responses,
    scram,
    topic_creation,
    topic_description,
)
from controller_core.shell.admin.acls import AclService, acl_handlers
from controller_core.shell.front.handler import RelayInstead, RequestHandler
from controller_core.shell.store import EntityConfigStore, FeatureStore
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, Failure
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.net.server import CloseConnection, never

ANSWERED_BY_BROKERS = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER})
"""Requests about the cluster that every broker answers."""
SERVED_BY_CONTROLLER_ONLY = frozenset({ApiKey.DESCRIBE_TOPIC_PARTITIONS})
"""Requests about the cluster that brokers in ZooKeeper mode do not answer."""

NOT_CONTROLLER_REASON = "this process is not the controller, and brokers know the cluster"

CurrentController = Callable[[], ActiveController | None]
"""Returns the active controller of this process; None while this process is not the controller."""


@dataclass(frozen=True, slots=True)
class Api:
    """Functions of one API: `answer` processes a request, `refused` builds an error response."""

    answer: Callable[[ActiveController, RequestContext, Body], Awaitable[Body | EncodedBody]]
    refused: Callable[[RequestContext, Body, Failure], Body]


async def no_wait() -> None:
    """Return at once."""


def no_brokers() -> int:
    """Return 0 as the number of registered brokers."""
    return 0


def handlers(
    active: CurrentController,
    wait_for_activation: Callable[[], Awaitable[None]] = no_wait,
    *,
    random: Random | None = None,
    topic_defaults: Callable[[], Mapping[str, TopicDefault]] = dict,
    acls: AclService | None = None,
    configs: EntityConfigStore | None = None,
    features: FeatureStore | None = None,
    is_urgent: Callable[[], bool] = never,
    registered: Callable[[], int | None] = no_brokers,
) -> dict[ApiKey, RequestHandler]:
    """Create the handlers of all APIs that the controller answers itself; they are the same for every listener.

    `wait_for_activation` waits while an active term is about to begin. `random` is used for topic ids and the start of placement; by
    default it is the system's generator, so that no two processes draw the same ids. `topic_defaults` returns the brokers' defaults
    of topic configurations by name; a missing one has Kafka's default. Only the configurations in responses to CreateTopics depend
    on it. `acls` are those of the authorizer; None: there is no authorizer. `configs` stores SCRAM credentials and quotas, `features`
    the cluster's features; None: requests about them are relayed. `is_urgent` returns whether the controller has events to process,
    which take precedence over long computations for clients. `registered` returns the number of registered brokers for a process that
    is not the controller, and None until they have been read.

    A handler raises RelayInstead if a broker should answer the request. Any other exception is a defect.
    """
    encoder = metadata_encoder.MetadataEncoder(is_urgent)
    table = apis(random or SystemRandom(), topic_defaults, features, mutation_quotas.MutationQuotas(configs), encoder)
    term_handlers: dict[ApiKey, RequestHandler] = {
        key: partial(answer, key, api, active, wait_for_activation, registered) for key, api in table.items()
    }

    async def is_controller() -> bool:
        await wait_for_activation()
        return active() is not None

    def cluster() -> Cluster | None:
        controller = active()
        return None if controller is None else controller.cluster

    return {
        **term_handlers,
        **controller_node.controller_node_handlers(cluster),
        **acl_handlers(acls),
        **scram.scram_handlers(configs, is_controller),
        **client_quotas.quota_handlers(configs),
    }


def apis(
    random: Random,
    topic_defaults: Callable[[], Mapping[str, TopicDefault]],
    features: FeatureStore | None,
    quotas: mutation_quotas.MutationQuotas,
    encoder: metadata_encoder.MetadataEncoder,
) -> Mapping[ApiKey, Api]:
    """Return the APIs of the active controller."""

    def created_configs(own: Mapping[str, str]) -> list[Body]:
        # Called after the creation: brokers may have reported their defaults while the request waited for them.
        return topic_creation.created_configs(own, topic_defaults())

    async def create_topics_handler(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await topic_creation.create_topics(active, context, body, random, created_configs, quotas)

    async def create_partitions_handler(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await topic_creation.create_partitions(active, context, body, random, quotas)

    async def delete_topics_handler(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await delete_topics.delete_topics(active, context, body, quotas)

    return {
        ApiKey.METADATA: Api(partial(metadata.metadata, encoder), metadata.metadata_refused),
        ApiKey.DESCRIBE_CLUSTER: Api(cluster_apis.describe_cluster, cluster_apis.describe_cluster_refused),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(
            topic_description.describe_topic_partitions, topic_description.describe_topic_partitions_refused
        ),
        ApiKey.CREATE_TOPICS: Api(create_topics_handler, topic_creation.create_topics_refused),
        ApiKey.DELETE_TOPICS: Api(delete_topics_handler, delete_topics.delete_topics_refused),
        ApiKey.CREATE_PARTITIONS: Api(create_partitions_handler, topic_creation.create_partitions_refused),
        ApiKey.ELECT_LEADERS: Api(partitions.elect_leaders, partitions.elect_leaders_refused),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(
            partitions.alter_reassignments, partitions.alter_reassignments_refused
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(partitions.list_reassignments, partitions.list_reassignments_refused),
        ApiKey.DESCRIBE_CONFIGS: Api(controller_node.describe_configs, controller_node.relay_refused),
        ApiKey.ALTER_CONFIGS: Api(controller_node.alter_configs, controller_node.relay_refused),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(controller_node.incremental_alter_configs, controller_node.relay_refused),
        ApiKey.UPDATE_FEATURES: Api(
            partial(cluster_apis.update_features, features), cluster_apis.update_features_refused
        ),
        ApiKey.UNREGISTER_BROKER: Api(broker_requests.unregister_broker, broker_requests.unregister_broker_refused),
        ApiKey.ALTER_PARTITION: Api(broker_requests.alter_partition, broker_requests.alter_partition_refused),
        ApiKey.CONTROLLED_SHUTDOWN: Api(
            controlled_shutdown.controlled_shutdown, controlled_shutdown.controlled_shutdown_refused
        ),
        ApiKey.ALLOCATE_PRODUCER_IDS: Api(
            broker_requests.allocate_producer_ids, broker_requests.allocate_producer_ids_refused
        ),
    }


async def answer(
    key: ApiKey,
    api: Api,
    active: CurrentController,
    wait_for_activation: Callable[[], Awaitable[None]],
    registered: Callable[[], int | None],
    context: RequestContext,
    body: Body,
) -> Body | EncodedBody:
    """Answer one request, or refuse it in the API's response format. Raises RelayInstead, CloseConnection."""
    await wait_for_activation()
    controller = active()
    if controller is None:
        relay_if_brokers_know(key, registered())
        return api.refused(context, body, responses.NOT_CONTROLLER)
    return await answered(partial(api.answer, controller, context, body), partial(api.refused, context, body))


async def answered(
    answer: Callable[[], Awaitable[Body | EncodedBody]], refuse: Callable[[Failure], Body]
) -> Body | EncodedBody:
    """Return the answer of an active controller, or the refusal for a term that has ended, an overload or a change that is too large."""
    try:
        return await answer()
    except TermEndedError:
        return refuse(responses.NOT_CONTROLLER)
    except OverloadedError:
        return refuse(responses.OVERLOADED)
    except RefusedWriteError as error:
        return refuse(error.failure)


def relay_if_brokers_know(key: ApiKey, broker_count: int | None) -> None:
    """Raise RelayInstead or CloseConnection if brokers know the answer better than this process.

    `broker_count` is the number of registered brokers, None until they have been read. With no broker, an answer without brokers is
    correct.
    """
    if broker_count == 0:
        return
    if key in ANSWERED_BY_BROKERS:
        raise RelayInstead(NOT_CONTROLLER_REASON)
    if key in SERVED_BY_CONTROLLER_ONLY:
        raise CloseConnection(NOT_CONTROLLER_REASON)
