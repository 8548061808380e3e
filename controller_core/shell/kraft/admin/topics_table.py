"""Table of the requests of Admin clients about topics, partitions, moves, elections and configs.

All but those about configs are answered by the code of both modes.

The metadata is committed when they are answered; brokers read it from the log. Source: ControllerApis.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from random import Random

from controller_core.metadata.quota_changes import entity_parts
from controller_core.model.quota import QuotaEntity
from controller_core.shell.active import ActiveController
from controller_core.shell.admin import delete_topics, handlers, partitions, topic_authorization, topic_creation
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.kraft.admin.configs import ConfigApis, refused
from controller_core.shell.kraft.admin.describe_configs import DescribeConfigsApi, current_settings
from controller_core.shell.kraft.port import MetadataController
from controller_core.shell.store import Config
from kafka_metadata.image import quota_entity
from kafka_node.authorization.guard import EVERYTHING, Ask, Guard
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_node.describe_configs import created_configs
from kafka_wire import ApiKey, Body, Failure, schema
from kafka_wire.encoded_body import EncodedBody

SERVED: dict[ApiKey, schema.Versions] = {
    ApiKey.CREATE_TOPICS: schema.Versions(2, 7),
    ApiKey.DELETE_TOPICS: schema.Versions(1, 6),
    ApiKey.CREATE_PARTITIONS: schema.Versions(0, 3),
    ApiKey.ELECT_LEADERS: schema.Versions(0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: schema.Versions(0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: schema.Versions(0, 0),
    ApiKey.ALTER_CONFIGS: schema.Versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: schema.Versions(0, 1),
    ApiKey.DESCRIBE_CONFIGS: schema.Versions(1, 4),
    ApiKey.ENVELOPE: schema.Versions(0, 0),
}
"""Versions of Kafka 4.3's controllers; the front answers Envelopes."""


class _CommittedQuotas:
    """The quotas of the committed image. Implements `mutation_quotas.QuotaSource`."""

    def __init__(self, controller: MetadataController) -> None:
        self._controller = controller

    async def read(self, entities: Sequence[QuotaEntity]) -> dict[QuotaEntity, Config] | Failure:
        """Return the quotas of entities as texts."""
        quotas = self._controller.committed_image.client_quotas
        found = {entity: quotas.get(quota_entity(entity_parts(entity)), {}) for entity in entities}
        return {entity: {key: str(record.value) for key, record in of.items()} for entity, of in found.items()}

    def may_have_config(self, _entity: QuotaEntity) -> bool:
        """Return True: records have any names."""
        return True


def topic_handlers(
    controller: MetadataController, guard: Guard | None, random: Random, file: Settings
) -> dict[ApiKey, RequestHandler]:
    """Return the handlers; a process that is not the active controller answers NOT_CONTROLLER.

    Topics and resources are authorized one by one where there is a guard. `random` draws ids and places, and
    `file` has the settings of the properties file.
    """

    def asking(context: RequestContext) -> Ask:
        return EVERYTHING if guard is None else guard.asking(context)

    configs = ConfigApis(controller, file, asking)
    quotas = MutationQuotas(_CommittedQuotas(controller))

    async def create_topics(active: ActiveController, context: RequestContext, body: Body) -> Body:
        configs_of = partial(created_configs, settings=current_settings(file, controller.image))
        return await topic_creation.create_topics(active, context, body, random, configs_of, quotas)

    async def create_partitions(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await topic_creation.create_partitions(active, context, body, random, quotas)

    async def delete(active: ActiveController, context: RequestContext, body: Body) -> Body:
        return await delete_topics.delete_topics(active, context, body, quotas)

    table: Mapping[ApiKey, handlers.Api] = {
        ApiKey.CREATE_TOPICS: handlers.Api(create_topics, topic_creation.create_topics_refused),
        ApiKey.DELETE_TOPICS: handlers.Api(delete, delete_topics.delete_topics_refused),
        ApiKey.CREATE_PARTITIONS: handlers.Api(create_partitions, topic_creation.create_partitions_refused),
        ApiKey.ELECT_LEADERS: handlers.Api(partitions.elect_leaders, partitions.elect_leaders_refused),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: handlers.Api(
            partitions.alter_reassignments, partitions.alter_reassignments_refused
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: handlers.Api(
            partitions.list_reassignments, partitions.list_reassignments_refused
        ),
    }
    found: dict[ApiKey, RequestHandler] = {key: partial(_answer, controller, api) for key, api in table.items()}
    if guard is not None:
        found = topic_authorization.authorize_topics(
            found, guard, lambda: controller.cluster if controller.is_active else None, handlers.no_wait
        )
    return {
        **found,
        ApiKey.ALTER_CONFIGS: partial(_answer_configs, configs.alter),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(_answer_configs, configs.alter_incrementally),
        ApiKey.DESCRIBE_CONFIGS: DescribeConfigsApi(controller, file, asking).answer,
    }


async def _answer_configs(
    answer: Callable[[RequestContext, Body], Awaitable[Body]], context: RequestContext, body: Body
) -> Body | EncodedBody:
    return await handlers.answered(partial(answer, context, body), partial(refused, context, body))


async def _answer(
    controller: MetadataController, api: handlers.Api, context: RequestContext, body: Body
) -> Body | EncodedBody:
    return await handlers.answered(partial(api.answer, controller, context, body), partial(api.refused, context, body))
