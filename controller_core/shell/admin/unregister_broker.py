"""UnregisterBroker, version 0: an operator declares that a broker never returns.

In ZooKeeper mode a broker's registration goes with its session. What stays is what waits for it: deletions of topics of which it
may still hold logs (`cluster.stray_logs`). Source: ControllerApis.handleUnregisterBroker (KRaft).
"""

from controller_core.model import events
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import error_fields
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body


async def unregister_broker(active: ActiveController, context: RequestContext, body: Body) -> Body:
    """Forget what a broker may hold."""
    failure: Failure | None = await active.submit(events.UnregisterBroker(body["broker_id"]))
    return error_fields(None) if failure is None else unregister_broker_refused(context, body, failure)


def unregister_broker_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer at the top."""
    return error_fields(failure)
