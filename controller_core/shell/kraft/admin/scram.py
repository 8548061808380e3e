"""AlterUserScramCredentials and DescribeUserScramCredentials in KRaft mode, version 0 (KIP-554).

Brokers describe credentials from their own image; Kafka's controllers list that API and fail it. Source: ScramControlManager, ScramImage.
"""

from functools import partial

from controller_core.metadata.scram_changes import alter_user_scram_credentials
from controller_core.shell.admin import responses, scram
from controller_core.shell.kraft.port import MetadataController
from kafka_metadata.security_records import scram_configs_of
from kafka_node.context import RequestContext
from kafka_node.scram_requests import altered_users, describe_users
from kafka_wire import Body, Failure


async def alter(controller: MetadataController, _context: RequestContext, body: Body) -> Body:
    """Alter credentials."""
    return scram.altered_body(await controller.write(partial(alter_user_scram_credentials, body=body)))


def alter_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every user with the same error."""
    return scram.altered_body(dict.fromkeys(altered_users(body), failure))


async def describe(controller: MetadataController, _context: RequestContext, body: Body) -> Body:
    """Describe mechanisms and iterations of the named users; without names, of all users."""
    return describe_users(body, scram_configs_of(await controller.read()))


def describe_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error only."""
    return {**responses.error_fields(failure), "results": []}
