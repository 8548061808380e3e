"""Settings of a controller in a KRaft quorum, as values.

They are named as in Kafka's properties file, with the units last; `settings_reading` reads them from the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller_core.metadata.delegation_tokens import TokenSettings
from controller_core.model.cluster import STEP_ROWS
from controller_core.model.mode_rules import RestartPolicy
from kafka_node.authorization.authorizer import Rules
from kafka_node.configs.layered_settings import Settings
from kafka_node.security import endpoints, listener_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTimes:
    """The settings `controller.quorum.*` of elections, requests and replication."""

    election_timeout_ms: int
    fetch_timeout_ms: int
    election_backoff_max_ms: int
    append_linger_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    auto_join_enable: bool
    """Whether an observer with the controller role adds itself to the voters (KIP-853)."""
    fetch_snapshot_max_bytes: int
    fetch_max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogSettings:
    """The settings `metadata.*` of the log and its snapshots."""

    max_record_bytes_between_snapshots: int
    max_snapshot_interval_ms: int
    """0: no snapshot because of time."""
    segment_bytes: int
    segment_ms: int
    max_retention_bytes: int
    max_retention_ms: int
    max_idle_interval_ms: int
    """0: the leader appends no NoOpRecord."""
    max_batch_size_bytes: int
    delete_delay_ms: int
    """Time between the removal of a segment or snapshot from the log and the deletion of its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The settings of the active controller, and Kafka's defaults of what requests leave out."""

    broker_session_timeout_ms: int
    disconnected_session_timeout_ms: int
    """Time for the next heartbeat of a broker whose connection has ended (ADR 57)."""
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    """With eligible leader replicas it becomes a config of the new cluster, which then counts (KIP-966)."""
    unclean_leader_election_enable: bool
    unclean_leader_election_interval_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_s: int
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    step_rows: int = STEP_ROWS
    """Not in the properties; the simulator's are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """Settings of one controller process."""

    node_id: int
    listeners: tuple[endpoints.Endpoint, ...]
    """What the process binds, in the order of `listeners`."""
    controller_listener_names: tuple[str, ...]
    """The first one is the listener for requests to other controllers."""
    advertised_listeners: tuple[endpoints.Endpoint, ...]
    """The addresses for other processes, in the order of the names; an empty host is that of this machine."""
    security: Mapping[str, listener_settings.ListenerSecurity]
    """By listener name."""
    log_directories: tuple[Path, ...]
    metadata_log_directory: Path
    """It need not be among `log_directories`."""
    voters: Mapping[int, endpoints.Address]
    """Static voters by id (kraft.version 0); empty: the voters are in the log."""
    bootstrap_servers: tuple[endpoints.Address, ...]
    times: QuorumTimes
    log: MetadataLogSettings
    controller: ControllerSettings
    unstable_feature_versions_enable: bool
    """Whether features may have levels that Kafka has not released. For tests."""
    authorizer: Rules | None
    """None: every peer may send every request."""
    tokens: TokenSettings
    token_check_interval_ms: int
    """Between two removals of expired delegation tokens."""
    values: Settings
    """All values of the file by name, as DescribeConfigs lists them; the other fields are those that the process needs in another form."""

    @property
    def all_directories(self) -> tuple[Path, ...]:
        """All directories that are formatted, sorted by their names."""
        return tuple(sorted({*self.log_directories, self.metadata_log_directory}, key=str))
