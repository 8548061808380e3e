"""APIs that the controller serves and calls: known to the codec, in versions of Kafka 3.9."""

import pytest

from controller_core.zookeeper_mode.apis import CALLED, SERVED
from kafka_wire import codec, schema
from kafka_wire.api import ApiKey
from kafka_wire.schema import Versions


@pytest.mark.parametrize("table", [SERVED, CALLED])
def test_what_is_served_or_called_is_known_to_the_codec(table: dict[ApiKey, Versions]) -> None:
    """Request and response, every version."""
    for key, versions in table.items():
        for name in (key.message + "Request", key.message + "Response"):
            lowest, highest = codec.versions(name)
            assert lowest <= versions.lowest <= versions.highest <= highest, name


def test_what_is_served_is_what_kafka_3_9_has() -> None:
    """Versions of Kafka 4 mean things that a ZooKeeper-mode controller does not know."""
    for key, versions in SERVED.items():
        assert versions.highest == schema.generation("3.9.2")[key.message + "Request"].versions.highest, key
