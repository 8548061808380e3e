"""Clusters without random faults, for scenarios that define what fails and when."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from controller_core.quorum.inputs import Shutdown
from controller_core.quorum.rules import Rules
from tests.sim.cluster import Cluster
from tests.sim.network import Weather
from tests.sim.swarm import Swarm

LIMIT_MS = 60_000
"""Simulated time after which a scenario has failed: far more than ten elections take."""

CALM = Swarm(
    voters=3,
    controllers=0,
    brokers=0,
    kraft_version=0,
    rules=(Rules.KAFKA_4,),
    weather=Weather(delay_ms=2),
    crash=0.0,
    restart_every_ms=100,
    flush_ms=2,
    partitions=False,
    partition_ms=1500,
    pauses=False,
    drift_percent=0,
    append_every_ms=20,
    snapshot_every_ms=0,
    fetch_timeout_spread_ms=0,
    fetch_max_bytes=1024 * 1024,
    fetch_snapshot_max_bytes=1024 * 1024,
    changes=False,
    upgrades=False,
    auto_join=False,
    wipes=False,
)
"""A healthy cluster with short delays."""


class Scenario:
    """A running cluster, whose invariants are checked all the time."""

    def __init__(self, seed: int, **wishes: object) -> None:
        self.cluster = Cluster(seed, replace(CALM, **wishes))
        self.cluster.start_all()
        self.cluster.schedule_work()

    def until(self, condition: Callable[[], bool]) -> None:
        """Run until a condition holds."""
        scheduler = self.cluster.scheduler
        assert scheduler.run_until(scheduler.now_ms + LIMIT_MS, done=condition), self.states()

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        scheduler = self.cluster.scheduler
        scheduler.run_until(scheduler.now_ms + duration_ms)

    def states(self) -> list[str]:
        """Return the nodes' states, for a failure."""
        return [
            f"{host.id} {host.node and host.node.state} {host.node and host.node.log}"
            for host in self.cluster.hosts.values()
        ]

    @property
    def committed(self) -> int:
        """End of what is committed."""
        return self.cluster.checks.committed_end

    @property
    def leader_id(self) -> int:
        """Id of the leader."""
        host = self.cluster.leader()
        assert host is not None, self.states()
        return host.id

    def until_another_leads(self, than: int) -> None:
        """Run until another node leads; there may be no leader in the meantime."""
        self.until(lambda: (leader := self.cluster.leader()) is not None and leader.id != than)

    def until_committed(self, beyond: int, nodes: Iterable[int] | None = None) -> None:
        """Run until nodes have committed so many records more."""
        goal, ids = self.committed + beyond, list(nodes or self.cluster.hosts)
        hosts = [self.cluster.hosts[node_id] for node_id in ids]
        self.until(lambda: all(host.node is not None and (host.node.high_watermark or 0) >= goal for host in hosts))

    def kill(self, *ids: int) -> None:
        """End processes at once."""
        for node_id in ids:
            self.cluster.hosts[node_id].crash()

    def start(self, *ids: int) -> None:
        """Start processes again."""
        for node_id in ids:
            self.cluster.hosts[node_id].start()

    def shut_down(self, node_id: int) -> None:
        """Stop a process as an operator does."""
        host = self.cluster.hosts[node_id]
        host.handle(Shutdown(5000))
        self.until(lambda: host.node is None or host.node.is_stopped)
        host.crash()

    def wipe(self, node_id: int) -> None:
        """End a process and lose its disk."""
        self.cluster.wipe(node_id)

    def only_links(self, *links: tuple[int, int]) -> None:
        """Cut all links but these, which work both ways."""
        ids, network = self.cluster.hosts, self.cluster.network
        network.heal()
        kept = {frozenset(link) for link in links}
        network.cut |= {(node_id, other) for node_id in ids for other in ids if frozenset((node_id, other)) not in kept}

    def cut_off(self, node_id: int) -> None:
        """Cut all links of a node."""
        self.cluster.network.isolate({node_id}, set(self.cluster.hosts) - {node_id}, both_ways=True)
