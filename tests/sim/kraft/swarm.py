"""Parameters that a seed draws for a run of the whole controller: its quorum, its brokers, its features, and what callers ask for."""

from dataclasses import dataclass, replace
from random import Random

from controller_core.model.cluster import STEP_ROWS
from controller_core.rules.feature_levels import FEATURES
from controller_core.shell.quorum.settings import ControllerSettings
from kafka_metadata.metadata_versions import KRAFT_VERSION, METADATA_VERSION
from kafka_metadata.records import FeatureLevelRecord, MetadataRecord
from tests.sim.network import Weather
from tests.sim.scenarios import CALM
from tests.sim.swarm import Swarm

SESSION_TIMEOUTS_MS = (1_000, 3_000)
"""Shorter and longer than an election of the quorum takes."""

DISCONNECTED_TIMEOUTS_MS = (50, 400, 3_000)
"""Shorter than the time between two heartbeats, longer, and longer than most sessions: then it has no effect."""

VERSIONS = (7, 12, 14, 16, 20, 25, 28, 30)
"""Metadata versions: of each group of records, leader epochs and directories at least one."""

SMALL_BATCH = 4
"""Records of a batch, so that the first records of a cluster, and failures of brokers, need several batches."""


@dataclass(frozen=True)
class Wishes:
    """Parameters of one run, in addition to those of its quorum."""

    quorum: Swarm
    brokers: int
    version: int
    """First metadata.version; callers may raise it in mid-run."""
    elr: bool
    """Whether the cluster begins with eligible leader replicas, where its metadata version has them."""
    max_records: int
    """Records of a batch."""
    session_timeout_ms: int
    disconnected_session_timeout_ms: int
    broker_restart_ms: int
    """About how often a broker is killed, shut down or started."""
    unclean: bool
    """Whether topics and callers ask for unclean elections."""
    apply_delay_ms: int
    """Mean time until a controller applies what is committed."""
    step_rows: int
    """Partitions of one decision about a broker that leaves or returns."""

    def bootstrap(self) -> tuple[MetadataRecord, ...]:
        """Return the first records of the cluster."""
        levels = {name: feature.default_level(self.version) for name, feature in FEATURES.items()}
        if not self.elr:
            levels.pop("eligible.leader.replicas.version")
        named = {name: level for name, level in levels.items() if level and name != KRAFT_VERSION}
        return (
            FeatureLevelRecord(METADATA_VERSION, self.version),
            *(FeatureLevelRecord(name, level) for name, level in sorted(named.items())),
        )

    def settings(self) -> ControllerSettings:
        """Return the settings of the controllers."""
        return ControllerSettings(
            broker_session_timeout_ms=self.session_timeout_ms,
            disconnected_session_timeout_ms=self.disconnected_session_timeout_ms,
            num_partitions=2,
            default_replication_factor=2,
            min_insync_replicas=1,
            unclean_leader_election_enable=False,
            unclean_leader_election_interval_ms=1_000,
            auto_leader_rebalance_enable=True,
            leader_imbalance_check_interval_s=1,
            step_rows=self.step_rows,
        )


def draw(seed: int) -> Wishes:
    """Draw the parameters of a seed."""
    random = Random(f"controllers {seed}")
    quorum = replace(
        CALM,
        voters=random.choice((1, 3, 3, 3, 5)),
        weather=Weather(random.choice((0.0, 0.02, 0.1)), random.choice((0.0, 0.05)), random.choice((0, 2, 20))),
        crash=random.choice((0.0, 0.0005, 0.002, 0.005)),
        restart_every_ms=random.choice((100, 500)),
        flush_ms=random.choice((0, 2, 20)),
        partitions=random.random() < 0.5,
        pauses=random.random() < 0.3,
        drift_percent=random.choice((0, 0, 5)),
        snapshot_every_ms=random.choice((0, 300, 1000)),
        fetch_timeout_spread_ms=random.choice((0, 100)),
        fetch_max_bytes=random.choice((1, 1024 * 1024)),
        fetch_snapshot_max_bytes=random.choice((64, 1024 * 1024)),
    )
    return Wishes(
        quorum,
        brokers=random.choice((3, 4, 5)),
        version=random.choice(VERSIONS),
        elr=random.random() < 0.7,
        max_records=random.choice((10_000, 10_000, SMALL_BATCH)),
        session_timeout_ms=random.choice(SESSION_TIMEOUTS_MS),
        disconnected_session_timeout_ms=random.choice(DISCONNECTED_TIMEOUTS_MS),
        broker_restart_ms=random.choice((300, 1_000)),
        unclean=random.random() < 0.4,
        apply_delay_ms=random.choice((0, 0, 20)),
        step_rows=random.choice((STEP_ROWS, 1, 2)),
    )
