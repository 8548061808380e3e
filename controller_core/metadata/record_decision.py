"""Decision about a write on which no decision about brokers, topics and partitions depends: ACLs, credentials, quotas, tokens, features.

Such a decision reads the image and returns records, where `model.decision.Decision` reads the cluster and returns changes. Source:
ControllerResult of Kafka.
"""

from dataclasses import dataclass
from typing import Any

from kafka_metadata.records import MetadataRecord


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """Records to append, and the reply once they are committed."""

    records: tuple[MetadataRecord, ...]
    """None: nothing changes."""
    reply: Any
    is_atomic: bool = True
    """Whether the records are in the log whole or not at all; others are split into batches of at most `batches.MAX_RECORDS`."""
