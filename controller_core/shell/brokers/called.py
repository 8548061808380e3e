"""APIs that the controller calls at brokers. The lowest versions are those of inter.broker.protocol.version 2.6 (seen on the wire)."""

from kafka_wire.api import ApiKey
from kafka_wire.schema import Versions

CALLED: dict[ApiKey, Versions] = {
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.LEADER_AND_ISR: Versions(4, 7),
    ApiKey.STOP_REPLICA: Versions(3, 4),
    ApiKey.UPDATE_METADATA: Versions(6, 8),
    ApiKey.DESCRIBE_CONFIGS: Versions(1, 4),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(1, 4),
}
