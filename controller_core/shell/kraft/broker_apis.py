"""Requests that brokers and other controllers send to the active controller: registrations, heartbeats, directories of replicas.

A heartbeat counts from the moment at which its handler begins, before the decision about it waits for a commit. Source: ControllerApis of
Kafka 4.3.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from uuid import UUID

from controller_core.metadata.controller_registration import register_controller
from controller_core.model import Endpoint, TopicPartition, events, quorum_events
from controller_core.model.broker import FeatureRange
from controller_core.quorum_mode import heartbeats, registration
from controller_core.quorum_mode.directories import Assigned
from controller_core.shell.admin import broker_requests, handlers, responses
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.kraft.controller import KRaftController
from kafka_metadata.records import SECURITY_PROTOCOL_IDS, EndPoint, RegisterControllerRecord, SupportedFeature
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, Failure, schema
from kafka_wire.encoded_body import EncodedBody

_PROTOCOLS = {number: name for name, number in SECURITY_PROTOCOL_IDS.items()}


async def register_broker(controller: KRaftController, context: RequestContext, body: Body) -> Body:
    """Register a broker, or refuse it."""
    event = registration_event(body)
    if isinstance(event, Failure):
        return error_only(context, body, event)
    answer: Failure | registration.Registered = await controller.submit(event)
    if isinstance(answer, Failure):
        return error_only(context, body, answer)
    return {"error_code": ErrorCode.NONE, "broker_epoch": answer.broker_epoch}


def registration_event(body: Body) -> quorum_events.RegisterBroker | Failure:
    """Translate the request; a listener with a security protocol that is unknown is refused."""
    unknown = [
        listener["security_protocol"]
        for listener in body["listeners"]
        if listener["security_protocol"] not in _PROTOCOLS
    ]
    if unknown:
        return Failure(ErrorCode.INVALID_REGISTRATION, f"The security protocol {unknown[0]} is unknown.")
    return quorum_events.RegisterBroker(
        body["broker_id"],
        body["cluster_id"],
        body["incarnation_id"],
        tuple(
            Endpoint(listener["name"], listener["host"], listener["port"], _PROTOCOLS[listener["security_protocol"]])
            for listener in body["listeners"]
        ),
        body["rack"],
        tuple(
            FeatureRange(feature["name"], feature["min_supported_version"], feature["max_supported_version"])
            for feature in body["features"]
        ),
        tuple(body["log_dirs"]),
        body["previous_broker_epoch"],
        body["is_migrating_zk_broker"],
    )


async def heartbeat(controller: KRaftController, context: RequestContext, body: Body) -> Body:
    """Keep a broker's session, and answer with its state."""
    broker, epoch = body["broker_id"], body["broker_epoch"]
    known = controller.cluster.brokers.get(broker)
    if known is not None and known.epoch == epoch:
        controller.sessions.hear(broker, epoch, controller.now_ms)
        controller.heartbeat_connections.heard(context.connection, broker, epoch)
    cordoned = body["cordoned_log_dirs"]
    answer: Failure | heartbeats.HeartbeatAnswer = await controller.submit(
        quorum_events.Heartbeat(
            broker,
            epoch,
            body["current_metadata_offset"],
            body["want_fence"],
            body["want_shut_down"],
            tuple(body["offline_log_dirs"]),
            None if cordoned is None else tuple(cordoned),
        )
    )
    if isinstance(answer, Failure):
        return error_only(context, body, answer)
    return {
        "error_code": ErrorCode.NONE,
        "is_caught_up": answer.is_caught_up,
        "is_fenced": answer.is_fenced,
        "should_shut_down": answer.may_shut_down,
    }


async def unregister_broker(controller: KRaftController, _context: RequestContext, body: Body) -> Body:
    """End the registration of a broker that does not come back."""
    answer: Failure | registration.Unregistered = await controller.submit(events.UnregisterBroker(body["broker_id"]))
    return responses.error_fields(answer if isinstance(answer, Failure) else None)


def error_only(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error code; the response has no field for a message."""
    return {"error_code": failure.code}


async def assign_replicas_to_dirs(controller: KRaftController, context: RequestContext, body: Body) -> Body:
    """Note the directories, and answer for each replica."""
    topic_ids: set[UUID] = {topic["topic_id"] for directory in body["directories"] for topic in directory["topics"]}
    names = {topic_id: controller.cluster.topic_name(topic_id) for topic_id in topic_ids}
    assigned = {
        TopicPartition(name, partition["partition_index"]): directory["id"]
        for directory in body["directories"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
        if (name := names[topic["topic_id"]]) is not None
    }
    event = quorum_events.AssignReplicasToDirs(body["broker_id"], body["broker_epoch"], assigned)
    answer: Failure | Assigned = await controller.submit(event)
    if isinstance(answer, Failure):
        return error_only(context, body, answer)

    def result(topic_id: UUID, partition: int) -> Body:
        name = names[topic_id]
        if name is None:
            return {"partition_index": partition, "error_code": ErrorCode.UNKNOWN_TOPIC_ID}
        failure = answer[TopicPartition(name, partition)]
        return {"partition_index": partition, "error_code": ErrorCode.NONE if failure is None else failure.code}

    directories = [
        {
            "id": directory["id"],
            "topics": [
                {
                    "topic_id": topic["topic_id"],
                    "partitions": [
                        result(topic["topic_id"], partition["partition_index"]) for partition in topic["partitions"]
                    ],
                }
                for topic in directory["topics"]
            ],
        }
        for directory in body["directories"]
    ]
    return {"error_code": ErrorCode.NONE, "directories": directories}


async def controller_registration(controller: KRaftController, _context: RequestContext, body: Body) -> Body:
    """Register a controller."""
    record = controller_record(body)
    failure: Failure | None = await controller.write(partial(register_controller, record=record))
    return responses.error_fields(failure)


def controller_record(body: Body) -> RegisterControllerRecord:
    """Return the record of a registration."""
    return RegisterControllerRecord(
        body["controller_id"],
        body["incarnation_id"],
        body["zk_migration_ready"],
        tuple(
            EndPoint(listener["name"], listener["host"], listener["port"], listener["security_protocol"])
            for listener in body["listeners"]
        ),
        tuple(
            SupportedFeature(feature["name"], feature["min_supported_version"], feature["max_supported_version"])
            for feature in body["features"]
        ),
    )


def refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with a top-level error."""
    return responses.error_fields(failure)


SERVED: dict[ApiKey, schema.Versions] = {
    ApiKey.ALTER_PARTITION: schema.Versions(2, 3),
    ApiKey.UNREGISTER_BROKER: schema.Versions(0, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: schema.Versions(0, 0),
    ApiKey.BROKER_REGISTRATION: schema.Versions(0, 4),
    ApiKey.BROKER_HEARTBEAT: schema.Versions(0, 2),
    ApiKey.CONTROLLER_REGISTRATION: schema.Versions(0, 0),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: schema.Versions(0, 0),
}
"""Versions of Kafka 4.3's controllers."""

Answer = Callable[[KRaftController, RequestContext, Body], Awaitable[Body | EncodedBody]]
Refuse = Callable[[RequestContext, Body, Failure], Body]

APIS: dict[ApiKey, tuple[Answer, Refuse]] = {
    ApiKey.ALTER_PARTITION: (broker_requests.alter_partition, broker_requests.alter_partition_refused),
    ApiKey.UNREGISTER_BROKER: (unregister_broker, broker_requests.unregister_broker_refused),
    ApiKey.ALLOCATE_PRODUCER_IDS: (
        broker_requests.allocate_producer_ids,
        broker_requests.allocate_producer_ids_refused,
    ),
    ApiKey.BROKER_REGISTRATION: (register_broker, error_only),
    ApiKey.BROKER_HEARTBEAT: (heartbeat, error_only),
    ApiKey.CONTROLLER_REGISTRATION: (controller_registration, refused),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: (assign_replicas_to_dirs, error_only),
}


def broker_handlers(controller: KRaftController) -> dict[ApiKey, RequestHandler]:
    """Return the handlers; a process that is not the active controller answers NOT_CONTROLLER."""
    return {key: partial(_answer, controller, answer, refuse) for key, (answer, refuse) in APIS.items()}


async def _answer(
    controller: KRaftController, answer: Answer, refuse: Refuse, context: RequestContext, body: Body
) -> Body | EncodedBody:
    return await handlers.answered(partial(answer, controller, context, body), partial(refuse, context, body))
