"""A simulated cluster: nodes with disks, a network, clients, and the faults of a seed."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, Batch, Position
from controller_core.quorum.inputs import Append, UpgradeKRaftVersion
from controller_core.quorum.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from controller_core.quorum.rules import ALL_VERSIONS, Destination, Settings
from controller_core.quorum.states import Leader
from controller_core.quorum.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.sim.checks import EMPTY, Checks
from tests.sim.disk import Chain, Disk, SnapshotFile
from tests.sim.faults import Faults
from tests.sim.host import LISTENER, Clock, Host
from tests.sim.network import CLEAR, Network
from tests.sim.scheduler import Scheduler
from tests.sim.swarm import Swarm

CLUSTER_ID = "simulated"
PORT = 9000
DRIFT_START_MS = 5_000

MINIMUM_FOR_WIPES = 3
"""Voters of which one may lose its disk: the others are a majority without it."""

UNCOMMITTED_MAX = 30
"""Clients wait while so many records are not committed: followers that fetch one batch at a time could never catch up otherwise."""


class Cluster:
    """Nodes 1, 2, …: first the voters, then other controllers, then brokers."""

    host_type: type[Host] = Host

    def __init__(self, seed: int, swarm: Swarm) -> None:
        self.swarm = swarm
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler, swarm.weather)
        self.faults = Faults(self.scheduler, swarm.crash, swarm.flush_ms)
        self.checks = Checks(self)
        self.snapshot_files: dict[Position, SnapshotFile] = {}
        self.hosts: dict[int, Host] = {}
        self.appended = 0
        self.wiped: int | None = None
        """The node whose disk was wiped and which is no voter again yet."""
        self.damaged: int | None = None
        """The voter whose disk is damaged; it may never start again."""
        count = swarm.voters + swarm.controllers + swarm.brokers
        for node_id in range(1, count + 1):
            self._add_host(node_id, count)

    def _add_host(self, node_id: int, count: int) -> None:
        swarm, random = self.swarm, self.scheduler.random
        settings = Settings(
            CLUSTER_ID,
            key_of(node_id),
            endpoints_of(node_id),
            LISTENER,
            tuple(
                Destination(-voter_id - 1, f"host-{voter_id}", PORT + voter_id)
                for voter_id in range(1, count + 1)
                if voter_id != node_id
            ),
            can_become_voter=node_id <= swarm.voters + swarm.controllers,
            fetch_timeout_spread_ms=swarm.fetch_timeout_spread_ms,
            rules=swarm.rules[node_id % len(swarm.rules)],
            fetch_max_bytes=swarm.fetch_max_bytes,
            fetch_snapshot_max_bytes=swarm.fetch_snapshot_max_bytes,
            auto_join=swarm.auto_join,
        )
        drift = random.randint(-swarm.drift_percent, swarm.drift_percent)
        clock = Clock(random.randrange(DRIFT_START_MS), 100 + drift)
        self.hosts[node_id] = self.host_type(self, settings, self._disk(), clock)

    def _disk(self) -> Disk:
        ids = range(1, self.swarm.voters + 1)
        if self.swarm.kraft_version == 0:
            return Disk(VoterSet.of(Voter(ReplicaKey(node_id), endpoints_of(node_id)) for node_id in ids), None)
        voters = VoterSet.of(Voter(key_of(node_id), endpoints_of(node_id), ALL_VERSIONS) for node_id in ids)
        return Disk(VoterSet(), SnapshotFile(BOOTSTRAP_SNAPSHOT, b"bootstrap", voters, 1, EMPTY))

    def id_of(self, destination: Destination) -> int:
        """Return the id of the node at an address."""
        return destination.port - PORT

    def start_all(self) -> None:
        """Start all nodes that do not run."""
        for host in self.hosts.values():
            if host.node is None:
                host.start()

    def leader(self) -> Host | None:
        """Return the running leader of the highest epoch."""
        latest, latest_epoch = None, -1
        for host in self.hosts.values():
            node = host.node
            if node is not None and isinstance(node.state, Leader) and node.state.epoch > latest_epoch:
                latest, latest_epoch = host, node.state.epoch
        return latest

    def append(self) -> None:
        """Append some records at the leader."""
        host = self.leader()
        if host is None or host.node is None:
            return
        if host.node.log.end_offset - (host.node.high_watermark or host.node.log.high_watermark) > UNCOMMITTED_MAX:
            return
        self.appended += 1
        payload, epoch = str(self.appended).encode(), host.node.epoch
        count = self.scheduler.random.choice((1, 1, 1, 3))
        host.command(lambda request_id: Append(request_id, epoch, payload, count), lambda _reply: None)

    def change_voters(self) -> None:
        """Ask the leader to add a controller that is no voter, or to remove a voter."""
        host, random = self.leader(), self.scheduler.random
        if host is None or host.node is None:
            return
        voters = host.node.voters
        others = [
            host.settings
            for host in self.hosts.values()
            if host.settings.can_become_voter and host.id not in voters.ids
        ]
        body: AddRaftVoterRequest | RemoveRaftVoterRequest
        if others and (len(voters) < 3 or random.random() < 0.5):
            new = random.choice(others)
            body = AddRaftVoterRequest(None, 1000, new.key, new.endpoints, random.random() < 0.5)
        else:
            if self.wiped is not None and len(voters) <= MINIMUM_FOR_WIPES:
                return  # The voter without a disk is one less already.
            body = RemoveRaftVoterRequest(None, random.choice(voters.voters).key)
        host.ask(body, lambda _reply: None)

    def remove(self, node_id: int) -> None:
        """Ask the leader to remove a voter."""
        host = self.leader()
        assert host is not None, node_id
        host.ask(RemoveRaftVoterRequest(None, self.hosts[node_id].settings.key), lambda _reply: None)

    def upgrade(self) -> None:
        """Ask the leader for kraft.version 1."""
        host = self.leader()
        if host is not None and host.node is not None:
            epoch = host.node.epoch
            host.command(lambda request_id: UpgradeKRaftVersion(request_id, epoch, 1), lambda _reply: None)

    def snapshot_of(self, host: Host, last: Batch) -> SnapshotFile:
        """Return the snapshot of the log up to a committed batch; it is the same on each node."""
        assert host.node is not None, host.id
        snapshot_id = Position(last.end_offset, last.epoch)
        known_chain = host.disk.chain_at(last.end_offset)
        assert known_chain is not None, snapshot_id
        history = host.node.history
        new = SnapshotFile(
            snapshot_id,
            self.snapshot_data(host, snapshot_id, known_chain),
            history.voters_at(last.last_offset),
            history.kraft_version_at(last.last_offset),
            known_chain,
        )
        known = self.snapshot_files.setdefault(snapshot_id, new)
        assert known == new, ("Q7", host.id, known, new)
        return known

    def snapshot_data(self, _host: Host, snapshot_id: Position, chain: Chain) -> bytes:
        """Return the bytes of a snapshot, which are the same on each node."""
        return f"snapshot {snapshot_id} {chain}".encode()

    def schedule_work(self) -> None:
        """Let clients append, and nodes make snapshots, for the whole run."""
        swarm, scheduler = self.swarm, self.scheduler
        scheduler.every(swarm.append_every_ms, self.append)
        if swarm.snapshot_every_ms:
            for host in self.hosts.values():
                scheduler.every(swarm.snapshot_every_ms, host.make_snapshot)

    def schedule_faults(self) -> None:
        """Let nodes restart, links break, nodes pause and voters change, as long as faults are on."""
        scheduler, swarm = self.scheduler, self.swarm
        scheduler.every(swarm.restart_every_ms, lambda: self._if_on(self._restart_some))
        if swarm.partitions:
            scheduler.every(swarm.partition_ms, lambda: self._if_on(self._break_links))
        if swarm.pauses:
            scheduler.every(2000, lambda: self._if_on(self._pause_one))
        if swarm.wipes:
            scheduler.every(2000, lambda: self._if_on(self._wipe_one))
        if swarm.damage:
            scheduler.every(1000, lambda: self._if_on(self._damage_one))
        if swarm.changes:
            scheduler.every(1000, lambda: self._if_on(self.change_voters))
        if swarm.upgrades:
            scheduler.every(2500, lambda: self._if_on(self.upgrade))

    def _wipe_one(self) -> None:
        """Give a voter an empty disk with another directory id, unless the last one is still missing or the voters are few."""
        hosts = self.hosts
        node = self.wiped and hosts[self.wiped].node
        if self.wiped is not None and not (node and node.is_voter and node.history.voters_offset != -1):
            return
        leader = self.leader()
        if leader is None or leader.node is None or len(leader.node.voters) < MINIMUM_FOR_WIPES:
            return
        self.wiped = self.scheduler.random.choice(leader.node.voters.ids)
        self.wipe(self.wiped)

    def _damage_one(self) -> None:
        """Damage the disk of one voter, always the same one, so that the others are a majority."""
        random = self.scheduler.random
        self.damaged = self.damaged or random.randint(1, self.swarm.voters)
        host = self.hosts[self.damaged]
        host.disk.be_damaged(random)
        if random.random() < 0.5:
            host.crash()

    def wipe(self, node_id: int) -> None:
        """End a process and give it an empty disk; at kraft.version 1 that has another directory id."""
        host = self.hosts[node_id]
        host.crash()
        host.disk = Disk(host.disk.static, None)
        if self.swarm.kraft_version:
            directory_id = UUID(int=self.scheduler.random.getrandbits(64) << 32)
            host.settings = replace(host.settings, key=ReplicaKey(node_id, directory_id))
        self.checks.forget(host)

    def _if_on(self, action: Callable[[], None]) -> None:
        if self.faults.is_on:
            action()

    def _restart_some(self) -> None:
        for host in self.hosts.values():
            if host.node is not None and host.node.is_stopped:
                host.crash()
            if host.node is None and self.scheduler.chance(0.5):
                host.start()

    def _break_links(self) -> None:
        self.network.heal()
        random, ids = self.scheduler.random, self.places()
        if random.random() < 0.7:
            some = set(random.sample(ids, random.randint(1, len(ids))))
            self.network.isolate(some, set(ids) - some, both_ways=random.random() < 0.6)

    def places(self) -> list[int]:
        """Return the ids of all that the network connects."""
        return list(self.hosts)

    def _pause_one(self) -> None:
        host = self.scheduler.random.choice(list(self.hosts.values()))
        host.paused_until_ms = self.scheduler.now_ms + self.scheduler.random.randrange(4000)

    def end_faults(self) -> None:
        """Repair everything: all links, all nodes, and a network without losses."""
        self.faults.is_on = False
        self.network.heal()
        self.network.weather = CLEAR
        for host in self.hosts.values():
            if host.node is not None and host.node.is_stopped:
                host.crash()
        self.start_all()

    def has_converged(self, beyond: int) -> bool:
        """Q16: all nodes know one leader and have committed, beyond an offset, what it has."""
        host = self.leader()
        if host is None or host.node is None:
            return False
        epoch = host.node.epoch
        nodes = [host.node for host in self.hosts.values() if host.node is not None]
        return all((node.epoch, node.leader_id) == (epoch, host.id) for node in nodes) and all(
            (node.high_watermark or 0) >= beyond for node in nodes
        )


def key_of(node_id: int) -> ReplicaKey:
    """Return the key of a node: its directory id follows from its id."""
    return ReplicaKey(node_id, UUID(int=node_id))


def endpoints_of(node_id: int) -> tuple[Endpoint, ...]:
    """Return the endpoints of a node."""
    return (Endpoint(LISTENER, f"host-{node_id}", PORT + node_id),)
