"""AlterClientQuotas in KRaft mode, versions 0 and 1 (KIP-546). Brokers describe quotas. Source: ClientQuotaControlManager."""

from functools import partial

from controller_core.metadata.quota_changes import QuotaAlteration, alter_client_quotas
from controller_core.model.quota import QuotaEntity
from controller_core.shell.admin import client_quotas, responses
from controller_core.shell.kraft.port import MetadataController
from kafka_node.context import RequestContext
from kafka_wire import Body, Failure


async def alter(
    controller: MetadataController,
    _context: RequestContext,
    body: Body,
    *,
    resolves: client_quotas.IsHost = client_quotas.is_host,
) -> Body:
    """Change quotas of entities, all in one batch."""
    outcomes: dict[client_quotas.NamedEntity, responses.Outcome] = {}
    alterations: list[QuotaAlteration] = []
    entities: dict[client_quotas.NamedEntity, QuotaEntity] = {}
    for entry in body["entries"]:
        requested, named = await client_quotas.requested_changes(entry, resolves), client_quotas.named_entity(entry)
        if isinstance(requested, Failure):
            outcomes[named] = requested
            continue
        entities[named] = requested[0]
        alterations.append(QuotaAlteration(requested[0], tuple(requested[1])))
    decide = partial(alter_client_quotas, alterations=alterations, validate_only=body["validate_only"])
    decided = await controller.write(decide)
    return client_quotas.altered_body({**outcomes, **{named: decided[entity] for named, entity in entities.items()}})


def refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every entity with the same error."""
    return client_quotas.altered_body(dict.fromkeys(map(client_quotas.named_entity, body["entries"]), failure))
