"""The parts of a running broker, as the handlers of requests get them."""

from dataclasses import dataclass

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.authorization.guard import Ask, Guard
from kafka_node.context import RequestContext
from light_broker.control.port import ControlPlane
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.metadata_view import MetadataView
from light_broker.core.settings import Settings
from light_broker.shell.producer_ids import ProducerIds
from light_broker.shell.replicas import ReplicaManager


@dataclass(slots=True, eq=False, kw_only=True)
class Broker:
    """A broker. The process makes it, and replaces `view` and `settings` when the control plane has new ones.

    Handlers read `view` once for a request, so that the whole response describes one state.
    """

    settings: Settings
    view: MetadataView
    control: ControlPlane
    replicas: ReplicaManager
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    guard: Guard | None = None
    """The authorizer; None: every caller may do everything."""

    def may(self, context: RequestContext) -> Ask:
        """Return a judge of the caller's operations."""
        return _EVERYTHING if self.guard is None else self.guard.asking(context)


class _Everything:
    """Allows every operation. Implements Ask."""

    def __call__(self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool = False) -> bool:  # noqa: ARG002
        return True

    def on_all(self, operation: Operation, resource_type: ResourceType) -> bool:  # noqa: ARG002
        """Return True."""
        return True


_EVERYTHING = _Everything()
