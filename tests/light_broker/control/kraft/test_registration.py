"""Registration of a light broker: what it claims, and the words when a cluster has more."""

from uuid import UUID

from kafka_node.security.settings import SecurityProtocol
from light_broker.control.kraft.registration import FEATURES, feature_problem, registration_body
from light_broker.core.metadata_view import BrokerView, Endpoint


def test_the_request_has_listeners_features_directories_and_the_epoch_of_the_last_clean_shutdown() -> None:
    """BrokerRegistration, version 4 (KIP-858, KIP-966)."""
    own = BrokerView(2, rack="a", endpoints={"CLIENT": Endpoint("host", 9092)})
    directories = [UUID(int=300), UUID(int=200)]

    actual = registration_body(
        own,
        {"CLIENT": SecurityProtocol.SASL_SSL},
        cluster_id="cluster",
        incarnation_id=UUID(int=1),
        directories=directories,
        previous_epoch=None,
    )

    assert actual == {
        "broker_id": 2,
        "cluster_id": "cluster",
        "incarnation_id": UUID(int=1),
        "listeners": [{"name": "CLIENT", "host": "host", "port": 9092, "security_protocol": 3}],
        "features": [
            {"name": name, "min_supported_version": low, "max_supported_version": high}
            for name, (low, high) in FEATURES.items()
        ],
        "rack": "a",
        "log_dirs": [UUID(int=200), UUID(int=300)],
        "previous_broker_epoch": -1,
    }


def test_levels_that_the_broker_has_are_no_problem() -> None:
    """A feature at level 0 is not in effect."""
    assert feature_problem({"metadata.version": 30, "kraft.version": 1, "share.version": 0}) is None


def test_the_message_names_each_feature_and_the_command_that_lowers_it() -> None:
    """Levels of a new cluster of Kafka 4.3."""
    actual = feature_problem({"metadata.version": 30, "group.version": 1, "share.version": 1})

    assert actual == (
        "The cluster has group.version 1, of which this broker has 0 to 0, share.version 1, of which this broker has 0 to 0. "
        "Run `kafka-features.sh downgrade --feature group.version=0 --feature share.version=0`."
    )
