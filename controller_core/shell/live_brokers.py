"""Endpoints of live brokers on each of the controller's listeners: the targets of the relay, and the brokers in answers."""

import logging
from collections.abc import Callable, Iterable, Sequence

from controller_core.model import Broker, Cluster, Endpoint
from controller_core.shell.front.route import BrokerEndpoint
from controller_core.shell.settings import Listener

log = logging.getLogger(__name__)


class LiveBrokers:
    """Live brokers, by the cluster's state on the active controller and by the registrations on a standby.

    `cluster` returns None on a standby; then `registered` lists the brokers.
    """

    def __init__(
        self,
        listeners: Iterable[Listener],
        cluster: Callable[[], Cluster | None],
        registered: Callable[[], Sequence[Broker]],
    ) -> None:
        self._cluster = cluster
        self._registered = registered
        self._protocols = {listener.name: listener.security_protocol for listener in listeners}
        self._logged: set[tuple[int, str]] = set()
        """Brokers' listeners whose differing protocol was logged."""

    def on(self, listener: str) -> Sequence[BrokerEndpoint]:
        """Return the endpoints of live brokers on a listener. A standby does not know which brokers are shutting down.

        Brokers whose listener of this name has another security protocol than the controller's are left out: a request that arrived
        with weaker authentication than the broker demands must not be relayed to it under the controller's name.
        """
        cluster = self._cluster()
        brokers: Iterable[Broker]
        if cluster is None:
            brokers = self._registered()
        else:
            brokers = (cluster.brokers[broker_id] for broker_id in sorted(cluster.may_lead()))
        protocol = self._protocols.get(listener, "")
        return tuple(
            BrokerEndpoint(broker.id, endpoint.host, endpoint.port, broker.epoch, endpoint.security_protocol)
            for broker in brokers
            if (endpoint := broker.endpoint(listener)) is not None and self._has_protocol(broker, endpoint, protocol)
        )

    def _has_protocol(self, broker: Broker, endpoint: Endpoint, protocol: str) -> bool:
        """Return whether a broker's listener has this security protocol; log a difference once."""
        if endpoint.security_protocol == protocol:
            return True
        if (broker.id, endpoint.listener) not in self._logged:
            self._logged.add((broker.id, endpoint.listener))
            extra = {
                "broker": broker.id,
                "listener": endpoint.listener,
                "broker_protocol": endpoint.security_protocol,
                "controller_protocol": protocol,
            }
            log.error(
                "Security protocol of a broker's listener differs; nothing is relayed to this broker", extra=extra
            )
        return False
