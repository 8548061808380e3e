"""Settings of the sampler."""

from dataclasses import dataclass
from pathlib import Path

from kafka_wire.net.client import NodeSettings
from kafka_wire.net.cluster import Address

MIN_INTERVAL_S, MAX_INTERVAL_S = 5, 3_600
"""Limits of the interval: a sample may take half of it, and the facts that are computed from samples are hourly."""
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""Metadata of 1.3 million partitions; a larger response is rejected before memory is allocated for it."""
CONNECT_TIMEOUT_MS = 3_000
REQUEST_TIMEOUT_MS = 10_000
"""After a timeout a broker is not asked again in the same sample, so that the sample is finished in time."""
MAX_DECODED_BYTES = 2 * 1024 * 1024
"""Limit of a response that is decoded into dicts, which take a hundred times its size: 100,000 committed offsets, or 50,000 groups."""
CLIENT_ID = "steward-sampler"
MAX_BOOTSTRAP = 64
NODE_SETTINGS = NodeSettings(
    client_id=CLIENT_ID,
    connect_timeout_ms=CONNECT_TIMEOUT_MS,
    request_timeout_ms=REQUEST_TIMEOUT_MS,
    max_frame_bytes=MAX_RESPONSE_BYTES,
)
"""Settings of connections to brokers, without TLS and SASL."""

MAX_RETENTION_DAYS = 36_500
"""A century: a larger number is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSettings:
    """The folder of Parquet files, and the days for which it keeps them; None keeps all, so that data is deleted only on request."""

    folder: Path
    retention_days: int | None = None

    def __post_init__(self) -> None:
        if self.retention_days is not None and not 1 <= self.retention_days <= MAX_RETENTION_DAYS:
            raise ValueError(
                f"--parquet-retention-days is {self.retention_days}; it must be 1 to {MAX_RETENTION_DAYS}, or absent to keep all"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    """The cluster, the interval, and whether committed offsets are read."""

    bootstrap: tuple[Address, ...]
    node: NodeSettings = NODE_SETTINGS
    interval_s: int = 60
    with_committed: bool = True

    def __post_init__(self) -> None:
        if not 0 < len(self.bootstrap) <= MAX_BOOTSTRAP:
            raise ValueError(f"{len(self.bootstrap)} bootstrap servers; 1 to {MAX_BOOTSTRAP} are allowed")
        if not MIN_INTERVAL_S <= self.interval_s <= MAX_INTERVAL_S:
            raise ValueError(f"an interval of {self.interval_s} s; {MIN_INTERVAL_S} to {MAX_INTERVAL_S} are allowed")
