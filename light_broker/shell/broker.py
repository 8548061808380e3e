"""The parts of a running broker, as the handlers of requests get them."""

from dataclasses import dataclass

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.authorization.guard import EVERYTHING, Ask, Guard
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from light_broker.control.port import ControlPlane
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.metadata_view import MetadataView
from light_broker.shell.groups.coordinators import GroupCoordinators
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.producer_ids import ProducerIds
from light_broker.shell.replicas.manager import ReplicaManager


@dataclass(slots=True, eq=False, kw_only=True)
class Broker:
    """A broker. The process makes it, and replaces `view` and `settings` when the control plane has new ones.

    Handlers read `view` once for a request, so that the whole response describes one state.
    """

    settings: Settings
    view: MetadataView
    control: ControlPlane
    logs: LogManager
    replicas: ReplicaManager
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    groups: GroupCoordinators
    guard: Guard | None = None
    """The authorizer; None: every caller may do everything."""

    def may(self, context: RequestContext) -> Ask:
        """Return a judge of the caller's operations."""
        return EVERYTHING if self.guard is None else self.guard.asking(context)

    def operations_on_topic(self, context: RequestContext, name: str) -> int:
        """Return the authorized operations on a topic (KIP-430)."""
        may = self.may(context)
        return authorized_operations(
            ResourceType.TOPIC, lambda operation: may(operation, ResourceType.TOPIC, name, quiet=True)
        )

    def operations_on_cluster(self, context: RequestContext) -> int:
        """Return the authorized operations on the cluster; 0 where the caller may not describe it."""
        may = self.may(context)
        if not may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            return 0
        return authorized_operations(
            ResourceType.CLUSTER, lambda operation: may(operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True)
        )
