"""Interface of a state machine on the quorum's log, as the process of a node composes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry

from controller_core.model import Endpoint
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.settings import QuorumSettings
from kafka_log.format.text_files import MetaProperties
from kafka_node.authorization.guard import Guard
from kafka_node.configs.layered_settings import Settings
from kafka_node.security.credentials import CredentialSource
from kafka_node.versions import BrokerVersions
from kafka_wire import ApiKey, schema
from kafka_wire.net.node import NodeSettings


class StateMachine(Protocol):
    """It is made before the listeners, started after the node, and closed before both."""

    @property
    def served(self) -> Mapping[ApiKey, schema.Versions]:
        """Versions of the APIs that it answers, in addition to those of the quorum or in their place."""

    @property
    def handlers(self) -> Mapping[ApiKey, RequestHandler]:
        """Handlers of these APIs."""

    def is_active(self) -> bool:
        """Whether this process is the active controller: only then it answers what brokers forward."""

    @property
    def guard(self) -> Guard | None:
        """The authorizer of all requests; None: every peer may send every request."""

    @property
    def scram_users(self) -> CredentialSource:
        """The SCRAM users of the cluster."""

    def features(self) -> BrokerVersions:
        """Return what ApiVersions lists."""

    def update_metrics(self) -> None:
        """Compute the metrics, which are about to be read."""

    def start(self) -> None:
        """Begin to apply the log."""

    async def close(self) -> None:
        """End all tasks."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a state machine gets from the process."""

    driver: Driver
    settings: QuorumSettings
    identity: MetaProperties
    endpoints: Callable[[], tuple[Endpoint, ...]]
    """Returns the advertised endpoints, once the listeners are bound."""
    members: NodeSettings
    """Settings of connections to other controllers."""
    registry: CollectorRegistry
    """For metrics of the state machine."""
    change_settings: Callable[[Settings], None]
    """Applies settings that have changed in the metadata."""


MakeStateMachine = Callable[[Place], StateMachine]
"""Makes the state machine of a process. Raises StartError."""
