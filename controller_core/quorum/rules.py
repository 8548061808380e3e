"""Settings of a node, and the two rows of election rules: Kafka 4's and Kafka 3's.

| | Kafka 4 | Kafka 3 |
| --- | --- | --- |
| before an election | a pre-vote (KIP-996): Prospective, then Candidate | Candidate at once |
| a pre-vote request | is answered | is refused with UNSUPPORTED_VERSION |
| a lost election | waits for the rest of the election timeout | waits for a binary exponential backoff |
| Resigned, after the election timeout | Unattached with the next epoch | Candidate |
"""

from dataclasses import dataclass
from enum import Enum

from controller_core.quorum.voters import DYNAMIC_VOTERS, STATIC_VOTERS, Endpoints, ReplicaKey, VersionRange

BACKOFF_BASE_MS = 100
"""Kafka 3's unit of the binary exponential backoff (RETRY_BACKOFF_BASE_MS)."""

BACKOFF_DOUBLINGS_MAX = 20
"""Kafka 3's limit; the backoff has its maximum after fewer retries."""

CHECK_QUORUM_FACTOR = 1.5
"""A leader resigns after this many fetch timeouts without fetches from a majority: Kafka's allowance for slow networks and disks."""

FETCH_TIMEOUT_SPREAD = 0.05
"""Range of the followers' fetch timeouts, as a share of the setting, which is its middle. Kafka's are all the setting.

A leader answers its followers at the same time, so their timeouts end within a millisecond. With five voters all would then ask for votes,
each would vote for itself, and no one would win before an election timeout.
"""

OBSERVER_SESSION_MS = 300_000
"""An observer that did not fetch for this time is no longer listed (Kafka's OBSERVER_SESSION_TIMEOUT_MS)."""

CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica may become a voter if it had caught up and fetched in the last hour (LeaderState.isReplicaCaughtUp)."""

RESPONSE_BYTES_MAX = 8 * 1024 * 1024
"""Limit of the records in one response, also where the follower requests more; as Kafka's largest batch."""

BATCH_BYTES_MAX = 8 * 1024 * 1024
"""Limit of a batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

ALL_VERSIONS = VersionRange(STATIC_VOTERS, DYNAMIC_VOTERS)
"""Levels of kraft.version that this node supports: all that Kafka 4.3 has."""


REPLICAS_MAX = 10_000
"""Limit of the observers that a leader lists, and of the Fetches that wait: more than any cluster has brokers."""


OBSERVERS_PER_MS = 4
"""Observers for each of which the pause between two answers is longer by 1 ms.

An answer and the next Fetch take 0.06 ms of the leader's thread and what their sockets need, so that observers use less than half of it.
"""

OBSERVER_PAUSE_MAX_MS = 250
"""Half of the time that a Fetch waits."""


class Rules(Enum):
    """Row of election rules."""

    KAFKA_4 = "4.x"
    KAFKA_3 = "3.x"

    @property
    def pre_vote(self) -> bool:
        """Whether an election starts with a pre-vote."""
        return self is Rules.KAFKA_4


@dataclass(frozen=True, slots=True)
class Destination:
    """Node to send a request to. Bootstrap servers, whose ids are not known, have ids from -2 downwards."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a node: `controller.quorum.*` with Kafka's defaults, and who the node is."""

    cluster_id: str
    key: ReplicaKey
    endpoints: Endpoints = ()
    listener: str = "CONTROLLER"
    """Name of the listener on which the nodes of the quorum reach each other."""
    bootstrap: tuple[Destination, ...] = ()
    can_become_voter: bool = True
    """Whether this is a controller; a broker only observes, and need not flush before it fetches."""
    kraft_versions: VersionRange = ALL_VERSIONS
    rules: Rules = Rules.KAFKA_4
    election_timeout_ms: int = 1000
    """An election timeout is drawn from this to twice this."""
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    fetch_timeout_spread_ms: int = 0
    """Range around the fetch timeout from which a follower draws its own for each leader, so that voters rarely campaign at the same time."""
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    auto_join: bool = False
    append_max_bytes: int = BATCH_BYTES_MAX
    """Limit of one append; a larger one is refused."""
    batch_max_bytes: int = BATCH_BYTES_MAX
    """Limit of a batch in the log, which is not larger than a segment; a larger fetched one is not appended."""

    @property
    def check_quorum_timeout_ms(self) -> int:
        """Time without fetches from a majority after which a leader resigns."""
        return int(self.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    @property
    def begin_epoch_interval_ms(self) -> int:
        """Interval of BeginQuorumEpoch requests to voters that do not fetch."""
        return self.fetch_timeout_ms // 2


def observer_pause_ms(observers: int) -> int:
    """Return the time between two answers with records to the observers of a leader (ADR 46).

    >>> [observer_pause_ms(count) for count in (3, 10, 100, 1000)]
    [0, 2, 25, 250]
    """
    return min(OBSERVER_PAUSE_MAX_MS, observers // OBSERVERS_PER_MS)


def successor_backoff_ms(position: int, count: int, maximum_ms: int) -> int:
    """Return the wait of a follower before its election after the leader resigned (strict exponential backoff).

    `position` is the follower's place among the `count` preferred successors. The first does not wait, and one that is not listed
    waits longest.

    >>> [successor_backoff_ms(position, 4, 1000) for position in range(5)]
    [0, 125, 250, 500, 1000]
    """
    if position == 0:
        return 0
    if position >= count:
        return maximum_ms
    base = maximum_ms >> (count - 1)
    return min(maximum_ms, base << (position - 1))


def retry_backoff_ms(retries: int, draw: int, maximum_ms: int) -> int:
    """Return Kafka 3's wait after a lost election: a random multiple of 100 ms whose range doubles with each retry.

    `retries` is 1 after the first election, `draw` a random number of any size.
    """
    slots = 2 << min(BACKOFF_DOUBLINGS_MAX, retries - 1)
    return min(BACKOFF_BASE_MS * (draw % slots), maximum_ms)
