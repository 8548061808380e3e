"""APIs that the controller serves and calls exist in the codec, in versions of Kafka 3.9."""

import pytest

from controller_core.zookeeper_mode.apis import CALLED, SERVED
from kafka_wire import ApiKey, codec, schema
from kafka_wire.schema import Versions


@pytest.mark.parametrize("table", [SERVED, CALLED])
def test_served_and_called_versions_exist_in_the_codec(table: dict[ApiKey, Versions]) -> None:
    """Request and response, every version."""
    for key, versions in table.items():
        for name in (key.message + "Request", key.message + "Response"):
            lowest, highest = codec.versions(name)
            assert lowest <= versions.lowest <= versions.highest <= highest, name


def test_served_versions_are_those_of_kafka_3_9() -> None:
    """Later versions have semantics that a ZooKeeper-mode controller does not have."""
    for key, versions in SERVED.items():
        assert versions.highest == schema.release_messages("3.9.2")[key.message + "Request"].versions.highest, key
