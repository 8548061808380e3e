"""BrokerRegistration (versions 0 to 4), BrokerHeartbeat (0 to 2) and UnregisterBroker (0).

A heartbeat counts from the moment at which its handler begins, before the decision about it waits for a commit. Source: ControllerApis of
Kafka 4.3.
"""

from controller_core.model import Endpoint, events, quorum_events
from controller_core.model.broker import FeatureRange
from controller_core.quorum_mode.heartbeats import HeartbeatAnswer
from controller_core.quorum_mode.registration import Registered, Unregistered
from controller_core.shell.admin.responses import error_fields
from controller_core.shell.kraft.controller import KRaftController
from kafka_metadata.records import SECURITY_PROTOCOL_IDS
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

_PROTOCOLS = {number: name for name, number in SECURITY_PROTOCOL_IDS.items()}


async def register_broker(controller: KRaftController, context: RequestContext, body: Body) -> Body:
    """Register a broker, or refuse it."""
    event = registration_event(body)
    if isinstance(event, Failure):
        return error_only(context, body, event)
    answer: Failure | Registered = await controller.submit(event)
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
    answer: Failure | HeartbeatAnswer = await controller.submit(
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
    answer: Failure | Unregistered = await controller.submit(events.UnregisterBroker(body["broker_id"]))
    return error_fields(answer if isinstance(answer, Failure) else None)


def error_only(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error code; the response has no field for a message."""
    return {"error_code": failure.code}
