"""ControllerRegistration (version 0, KIP-919): the endpoints and features of each controller, for tools and for upgrades."""

from functools import partial

from controller_core.metadata.controller_registration import register_controller
from controller_core.shell.admin.responses import error_fields
from controller_core.shell.kraft.controller import KRaftController
from kafka_metadata.records import EndPoint, RegisterControllerRecord, SupportedFeature
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import Failure


async def controller_registration(controller: KRaftController, _context: RequestContext, body: Body) -> Body:
    """Register a controller."""
    record = controller_record(body)
    failure: Failure | None = await controller.write(partial(register_controller, record=record))
    return error_fields(failure)


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
    return error_fields(failure)
