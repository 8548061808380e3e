"""Brokers' defaults of topic configurations, from their DescribeConfigs answers (ServerTopicConfigSynonyms)."""

import pytest

from controller_core.shell.active import TopicDefault
from controller_core.shell.brokers.describe_configs import (
    static_unclean_election,
    topic_default_settings,
    topic_defaults,
)
from kafka_node.configs.topic_config_table import TOPIC_CONFIGS
from kafka_wire import Body

DYNAMIC_DEFAULT, STATIC, DEFAULT = 3, 4, 5


def config(name: str, value: str | None, source: int = STATIC, **synonyms: int) -> Body:
    """One setting of an answer; synonyms are values with their sources."""
    listed = [{"name": name, "value": text, "source": of} for text, of in synonyms.items()]
    return {"name": name, "value": value, "config_source": source, "synonyms": listed}


def test_every_setting_that_may_set_a_topic_default_is_requested() -> None:
    """All first names, and the further ones."""
    first = {key.broker_name for key in TOPIC_CONFIGS.values() if key.broker_name is not None}

    assert first < set(topic_default_settings())
    assert set(topic_default_settings()) - first == {
        "log.roll.hours",
        "log.roll.jitter.hours",
        "log.flush.scheduler.interval.ms",
        "log.retention.minutes",
        "log.retention.hours",
    }


def test_a_setting_that_is_not_set_explicitly_is_no_default_of_the_broker() -> None:
    """A broker also returns Kafka's defaults."""
    assert topic_defaults([config("log.segment.bytes", "1073741824", DEFAULT)]) == {}


@pytest.mark.parametrize("source", [2, DYNAMIC_DEFAULT, STATIC])
def test_a_default_has_the_topic_configurations_name(source: int) -> None:
    """Set in a file or dynamically, for one broker or for all."""
    configs = [config("log.segment.bytes", "5000", source), config("message.max.bytes", "77", source)]

    expected = {"segment.bytes": TopicDefault("5000", source), "max.message.bytes": TopicDefault("77", source)}
    assert topic_defaults(configs) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "180000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "4"),
        ({"log.retention.hours": "2", "log.retention.minutes": None, "log.retention.ms": None}, "7200000"),
        ({"log.retention.hours": "-1"}, "-1"),
        ({"log.retention.minutes": "many"}, "many"),
    ],
)
def test_the_first_name_that_is_set_applies_in_milliseconds(settings: dict[str, str | None], expected: str) -> None:
    """ServerTopicConfigSynonyms: in the order of the table; KafkaConfig treats any negative retention as no limit."""
    defaults = topic_defaults([config(name, value) for name, value in settings.items()])
    assert defaults == {"retention.ms": TopicDefault(expected, STATIC)}


def test_unclean_election_of_a_brokers_file_is_distinguished_from_the_dynamic_default() -> None:
    """The dynamic default is read from ZooKeeper; it overrides the file, which applies again once the default is removed."""
    name = "unclean.leader.election.enable"

    assert static_unclean_election([config(name, "false", DYNAMIC_DEFAULT, false=DYNAMIC_DEFAULT, TRUE=STATIC)])
    assert static_unclean_election([config(name, "false", STATIC, false=STATIC)]) is False
    assert static_unclean_election([config(name, "true", DYNAMIC_DEFAULT, true=DYNAMIC_DEFAULT)]) is None
    assert static_unclean_election([]) is None
