"""Table of the requests of Admin clients about ACLs, credentials, quotas, delegation tokens and features."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from uuid import UUID

from controller_core.metadata.delegation_tokens import TokenSettings
from controller_core.metadata.feature_changes import QuorumFeatures
from controller_core.shell.admin import handlers
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.kraft.admin import client_quotas, scram
from controller_core.shell.kraft.admin import delegation_tokens as tokens
from controller_core.shell.kraft.admin.acls import AclApis
from controller_core.shell.kraft.admin.features import FeatureApi, UpdateKRaftVersion
from controller_core.shell.kraft.port import MetadataController
from controller_core.shell.quorum.update_features import update_refused
from controller_core.shell.random_topic_ids import draw_topic_id
from kafka_node.authorization import acl_requests, guard
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, Failure, schema
from kafka_wire.encoded_body import EncodedBody

SERVED: dict[ApiKey, schema.Versions] = {
    ApiKey.DESCRIBE_ACLS: schema.Versions(1, 3),
    ApiKey.CREATE_ACLS: schema.Versions(1, 3),
    ApiKey.DELETE_ACLS: schema.Versions(1, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: schema.Versions(1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: schema.Versions(1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: schema.Versions(1, 2),
    ApiKey.ALTER_CLIENT_QUOTAS: schema.Versions(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: schema.Versions(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: schema.Versions(0, 0),
    ApiKey.UPDATE_FEATURES: schema.Versions(0, 2),
}
"""Versions of Kafka 4.3's controllers."""

Answer = Callable[[RequestContext, Body], Awaitable[Body | EncodedBody]]
Refuse = Callable[[RequestContext, Body, Failure], Body]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityParts:
    """What the handlers need in addition to the controller."""

    acls: guard.KnownAcls | None
    """The committed ACLs; None: there is no authorizer."""
    asking: Callable[[RequestContext], guard.Ask]
    """Returns the judge of a caller's operations."""
    tokens: TokenSettings
    features: Callable[[], QuorumFeatures]
    kraft_version: UpdateKRaftVersion
    random: Random


def security_handlers(controller: MetadataController, parts: SecurityParts) -> dict[ApiKey, RequestHandler]:
    """Return the handlers; a process that is not the active controller answers NOT_CONTROLLER."""
    ids = _ids(parts.random)
    acls = AclApis(controller, parts.acls, ids)
    token_apis = tokens.TokenApis(controller, parts.tokens, parts.asking, ids)
    features = FeatureApi(controller, parts.features, parts.kraft_version)
    table: dict[ApiKey, tuple[Answer, Refuse]] = {
        ApiKey.DESCRIBE_ACLS: (acls.describe, lambda _, __, failure: acl_requests.describe_refused(failure)),
        ApiKey.CREATE_ACLS: (acls.create, lambda _, body, failure: acl_requests.create_refused(body, failure)),
        ApiKey.DELETE_ACLS: (acls.delete, lambda _, body, failure: acl_requests.delete_refused(body, failure)),
        ApiKey.CREATE_DELEGATION_TOKEN: (token_apis.create, tokens.create_refused),
        ApiKey.RENEW_DELEGATION_TOKEN: (token_apis.renew, tokens.change_refused),
        ApiKey.EXPIRE_DELEGATION_TOKEN: (token_apis.expire, tokens.change_refused),
        ApiKey.ALTER_CLIENT_QUOTAS: (partial(client_quotas.alter, controller), client_quotas.refused),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (partial(scram.describe, controller), scram.describe_refused),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (partial(scram.alter, controller), scram.alter_refused),
        ApiKey.UPDATE_FEATURES: (features.update, update_refused),
    }
    return {key: partial(_answer, answer, refuse) for key, (answer, refuse) in table.items()}


async def _answer(answer: Answer, refuse: Refuse, context: RequestContext, body: Body) -> Body | EncodedBody:
    return await handlers.answered(partial(answer, context, body), partial(refuse, context, body))


def _ids(random: Random) -> Iterator[UUID]:
    while True:
        yield draw_topic_id(random)
