"""Table of the requests that brokers and other controllers send to the active controller."""

from collections.abc import Awaitable, Callable
from functools import partial

from controller_core.shell.admin import broker_requests, handlers
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.kraft.broker_apis import controllers, directories, registration
from controller_core.shell.kraft.controller import KRaftController
from kafka_node.context import RequestContext
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.errors import Failure
from kafka_wire.schema import Versions

SERVED: dict[ApiKey, Versions] = {
    ApiKey.ALTER_PARTITION: Versions(2, 3),
    ApiKey.UNREGISTER_BROKER: Versions(0, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: Versions(0, 0),
    ApiKey.BROKER_REGISTRATION: Versions(0, 4),
    ApiKey.BROKER_HEARTBEAT: Versions(0, 2),
    ApiKey.CONTROLLER_REGISTRATION: Versions(0, 0),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: Versions(0, 0),
}
"""Versions of Kafka 4.3's controllers."""

Answer = Callable[[KRaftController, RequestContext, Body], Awaitable[Body | EncodedBody]]
Refuse = Callable[[RequestContext, Body, Failure], Body]

APIS: dict[ApiKey, tuple[Answer, Refuse]] = {
    ApiKey.ALTER_PARTITION: (broker_requests.alter_partition, broker_requests.alter_partition_refused),
    ApiKey.UNREGISTER_BROKER: (registration.unregister_broker, broker_requests.unregister_broker_refused),
    ApiKey.ALLOCATE_PRODUCER_IDS: (
        broker_requests.allocate_producer_ids,
        broker_requests.allocate_producer_ids_refused,
    ),
    ApiKey.BROKER_REGISTRATION: (registration.register_broker, registration.error_only),
    ApiKey.BROKER_HEARTBEAT: (registration.heartbeat, registration.error_only),
    ApiKey.CONTROLLER_REGISTRATION: (controllers.controller_registration, controllers.refused),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: (directories.assign_replicas_to_dirs, registration.error_only),
}


def broker_handlers(controller: KRaftController) -> dict[ApiKey, RequestHandler]:
    """Return the handlers; a process that is not the active controller answers NOT_CONTROLLER."""
    return {key: partial(_answer, controller, answer, refuse) for key, (answer, refuse) in APIS.items()}


async def _answer(
    controller: KRaftController, answer: Answer, refuse: Refuse, context: RequestContext, body: Body
) -> Body | EncodedBody:
    return await handlers.answered(partial(answer, controller, context, body), partial(refuse, context, body))
