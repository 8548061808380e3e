"""A simulated cluster in KRaft mode: controllers on the simulated quorum, model brokers, callers, and the faults of a seed."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast
from uuid import UUID

from controller_core.metadata.controller_registration import register_controller
from controller_core.model import events, quorum_events
from controller_core.quorum.batches import Position
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.kraft.features import SUPPORTED
from controller_core.shell.kraft.upkeep import MAX_ELECTIONS, SESSION_CHECKS
from controller_core.shell.quorum.wire_batches import snapshot_data
from kafka_metadata.metadata_versions import CONTROLLERS_SINCE
from kafka_metadata.records import RegisterControllerRecord, SupportedFeature
from kafka_metadata.snapshot import snapshot_values
from tests.sim.cluster import Cluster
from tests.sim.disk import Chain
from tests.sim.host import Host
from tests.sim.kraft.brokers import FIRST_ID, HEARTBEAT_MS, ModelBroker
from tests.sim.kraft.callers import Callers
from tests.sim.kraft.checks import MetadataChecks
from tests.sim.kraft.controller_host import ControllerHost, Outcome
from tests.sim.kraft.swarm import Wishes

CALL_MS = 100
"""Interval of callers' requests."""

UPKEEP_MS = 1_000
"""Interval of elections by the controller itself."""

FETCH_MS = (50, 50, 600)
"""Intervals of brokers' reads of the metadata: more and less often than their heartbeats."""

WORK_MS = 200
"""Interval of a leader's changes of ISRs."""


class KRaftCluster(Cluster):
    """Controllers have the ids from 1 on, brokers those from 101 on."""

    host_type = ControllerHost
    cluster_id = "simulated"

    def __init__(self, seed: int, wishes: Wishes) -> None:
        self.wishes = wishes
        self.metadata = MetadataChecks(self)
        super().__init__(seed, wishes.quorum)
        self.brokers = {broker: ModelBroker(self, broker) for broker in range(FIRST_ID, FIRST_ID + wishes.brokers)}
        self.callers = Callers(self)

    @property
    def controllers(self) -> list[ControllerHost]:
        """All nodes of the quorum."""
        return cast("list[ControllerHost]", list(self.hosts.values()))

    def places(self) -> list[int]:
        """Return the ids of all that the network connects, but for callers."""
        return [*self.hosts, *self.brokers]

    def active(self) -> ControllerHost | None:
        """Return the host of the active controller of the latest term."""
        found = [
            controller
            for controller in self.controllers
            if controller.controller is not None and controller.controller.is_active
        ]
        return max(found, key=lambda one: one.node.epoch if one.node else 0, default=None)

    def controller_after(self, node_id: int) -> int:
        """Return the controller that a broker asks after this one."""
        return node_id % len(self.hosts) + 1

    def apply_delay_ms(self) -> int:
        """Draw the time until a controller applies what its node has new."""
        mean_ms = self.wishes.apply_delay_ms
        return int(self.scheduler.random.expovariate(1 / mean_ms)) if mean_ms else 0

    def deliver(
        self,
        source: int,
        target: int,
        work: Callable[[KRaftController], Awaitable[Any]],
        done: Callable[[Outcome | None], None] | None,
    ) -> None:
        """Send a request to a controller, and get its answer; None from one that does not run. Without `done` it has no answer."""
        host = cast("ControllerHost", self.hosts[target])

        def answer(outcome: Outcome | None) -> None:
            if done is not None:
                self.network.deliver(target, source, partial(done, outcome))

        def serve() -> None:
            assert host.controller is not None, host.id
            host.run(_coroutine(work, host.controller), None if done is None else answer)

        def arrive() -> None:
            if host.controller is None:
                answer(None)
            else:
                host.later(0, serve)

        self.network.deliver(source, target, arrive)

    def snapshot_data(self, host: Host, snapshot_id: Position, _chain: Chain) -> bytes:
        """Return a snapshot of the metadata: C15, it is the same on each node."""
        controller = cast("ControllerHost", host).controller
        assert controller is not None, host.id
        assert host.node is not None, host.id
        committed = controller.committed
        values = snapshot_values(committed.image)
        return b"".join(snapshot_data(values, snapshot_id, committed.last_timestamp_ms, host.node.history, 0))

    def schedule_work(self) -> None:
        """Let brokers, callers and controllers work for the whole run."""
        scheduler, swarm = self.scheduler, self.swarm
        for broker in self.brokers.values():
            scheduler.every(HEARTBEAT_MS, broker.beat)
            scheduler.every(scheduler.random.choice(FETCH_MS), broker.fetch)
            scheduler.every(WORK_MS, broker.work)
        scheduler.every(CALL_MS, lambda: self._if_on(self.callers.call))
        for host in self.controllers:
            shortest_ms = min(self.wishes.session_timeout_ms, self.wishes.disconnected_session_timeout_ms)
            scheduler.every(shortest_ms // SESSION_CHECKS, partial(self._expire_sessions, host))
            scheduler.every(UPKEEP_MS, partial(self._keep_up, host))
            if swarm.snapshot_every_ms:
                scheduler.every(swarm.snapshot_every_ms, host.make_snapshot)

    def schedule_faults(self) -> None:
        """Let brokers and controllers fail."""
        super().schedule_faults()
        for broker in self.brokers.values():
            self.scheduler.every(self.wishes.broker_restart_ms, partial(self._if_on, partial(self._change, broker)))

    def _change(self, broker: ModelBroker) -> None:
        """Start a broker, end it in one of three ways, or end a connection of it, now and then."""
        random = self.scheduler.random
        if broker.process is None:
            broker.start()
        elif random.random() < 0.3:
            kind = random.random()
            if kind < 0.3:
                broker.shut_down()
            elif kind < 0.45:
                broker.fail_directory()
            elif kind < 0.55:
                broker.disconnect()
            else:
                broker.kill()
                if random.random() < 0.5:
                    broker.start()

    def _expire_sessions(self, host: ControllerHost) -> None:
        """Fence brokers whose sessions have ended, as `Upkeep`."""
        controller = host.controller
        if controller is not None and controller.is_active and host.paused_until_ms <= self.scheduler.now_ms:
            for broker, epoch in controller.sessions.expired(controller.now_ms):
                host.run(controller.attempt(quorum_events.FenceBroker(broker, epoch)), None)
                if host.controller is None:
                    return

    def _keep_up(self, host: ControllerHost) -> None:
        """Elect leaders, as `Upkeep`, and register the controllers, as `Registrar`."""
        active = self.active()
        if active is None or host.controller is None:
            return
        image = host.controller.committed_image
        if (image.metadata_version or 0) >= CONTROLLERS_SINCE and host.id not in image.controllers:
            self.deliver(host.id, active.id, partial(_register, host.id), _ignore)
        for event in (quorum_events.ElectUncleanLeaders(MAX_ELECTIONS), events.BalanceLeaders(0)):
            if host.controller is not None and host.controller.is_active:
                host.run(host.controller.attempt(event), None)

    def end_faults(self) -> None:
        """Repair everything, and let all brokers run with all their directories."""
        super().end_faults()
        for broker in self.brokers.values():
            if broker.process is not None and (broker.failed or broker.process.wants_shutdown):
                broker.kill()
            if broker.process is None:
                broker.start()

    def recover(self) -> None:
        """Do what persons do once the faults have ended: start brokers that ended, and accept losses."""
        for broker in self.brokers.values():
            if broker.process is None:
                broker.start()
        self.callers.elect_uncleanly()

    def has_settled(self) -> bool:
        """Whether all nodes and brokers have the same metadata, and every partition is whole."""
        active = self.active()
        if active is None or active.controller is None or active.node is None:
            return False
        end_offset = active.node.log.end_offset
        if any(
            controller.controller is None or controller.controller.committed.end_offset != end_offset
            for controller in self.controllers
        ):
            return False
        if any(broker.view.end_offset != end_offset for broker in self.brokers.values()):
            return False
        return self.metadata.is_whole()


def _ignore(_outcome: Outcome | None) -> None:
    """Take no note of an answer."""


async def _coroutine(work: Callable[[KRaftController], Awaitable[Any]], controller: KRaftController) -> Any:
    return await work(controller)


async def _register(node_id: int, controller: KRaftController) -> Any:
    features = tuple(SupportedFeature(name, lowest, highest) for name, (lowest, highest) in SUPPORTED.items())
    record = RegisterControllerRecord(node_id, UUID(int=node_id), False, (), features)
    return await controller.write(partial(register_controller, record=record))
