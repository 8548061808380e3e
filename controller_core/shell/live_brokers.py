"""Where live brokers are reached on each of our listeners: whom requests go on to, and whom callers are told of.

Leaves out the going on (front.relay).
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster
from controller_core.shell.front.route import BrokerEndpoint
from controller_core.shell.settings import Listener

log = logging.getLogger(__name__)


class LiveBrokers:
    """The brokers of the cluster that this process holds; `cluster` gives it, None while it holds none.

    `registered` lists the brokers for a process that is not the controller.
    """

    def __init__(
        self,
        listeners: Iterable[Listener],
        cluster: Callable[[], Cluster | None],
        registered: Callable[[], Sequence[Broker]],
    ) -> None:
        self._cluster = cluster
        self._registered = registered
        self._spoken = {listener.name: listener.security_protocol for listener in listeners}
        self._unlike: set[tuple[int, str]] = set()
        """Brokers' listeners that speak something else than ours of the same name, as far as that was said."""

    def on(self, listener: str) -> Sequence[BrokerEndpoint]:
        """Where live brokers are reached on a listener. A standby does not know which of them are shutting down.

        A broker whose listener of this name speaks another protocol than ours is left out: what came in here with less
        proof than it asks for must not go on to it under our name.
        """
        cluster = self._cluster()
        brokers: Iterable[Broker]
        if cluster is None:
            brokers = self._registered()
        else:
            brokers = (cluster.brokers[broker_id] for broker_id in sorted(cluster.may_lead()))
        spoken = self._spoken.get(listener, "")
        return tuple(
            BrokerEndpoint(broker.id, endpoint.host, endpoint.port, broker.epoch, endpoint.security_protocol)
            for broker in brokers
            if (endpoint := broker.endpoint(listener)) is not None and self._is_alike(broker, endpoint, spoken)
        )

    def _is_alike(self, broker: Broker, endpoint: Endpoint, spoken: str) -> bool:
        """Tell whether a broker's listener speaks what ours does, and say once where it does not."""
        if endpoint.security_protocol == spoken:
            return True
        if (broker.id, endpoint.listener) not in self._unlike:
            self._unlike.add((broker.id, endpoint.listener))
            extra = {
                "broker": broker.id,
                "listener": endpoint.listener,
                "ours": spoken,
                "its": endpoint.security_protocol,
            }
            log.error("a broker's listener speaks another protocol than ours: nothing is relayed to it", extra=extra)
        return False
