"""Brokers' defaults of topic configurations, from what they answer to DescribeConfigs (ServerTopicConfigSynonyms)."""

import pytest

from controller_core.rules.topic_config_table import TOPIC_CONFIGS
from controller_core.shell.active import TopicDefault
from controller_core.shell.brokers.describe_configs import (
    static_unclean_election,
    topic_default_settings,
    topic_defaults,
)
from kafka_wire.codec import Body

DYNAMIC_DEFAULT, STATIC, DEFAULT = 3, 4, 5


def config(name: str, value: str | None, source: int = STATIC, **synonyms: int) -> Body:
    """One setting as a broker tells it; synonyms are values with their sources."""
    told = [{"name": name, "value": text, "source": of} for text, of in synonyms.items()]
    return {"name": name, "value": value, "config_source": source, "synonyms": told}


def test_every_setting_that_may_give_a_default_is_asked_for() -> None:
    """All first names, and those that come after them."""
    first = {key.broker_name for key in TOPIC_CONFIGS.values() if key.broker_name is not None}

    assert first < set(topic_default_settings())
    assert set(topic_default_settings()) - first == {
        "log.roll.hours",
        "log.roll.jitter.hours",
        "log.flush.scheduler.interval.ms",
        "log.retention.minutes",
        "log.retention.hours",
    }


def test_what_nobody_set_is_kafkas_own_default() -> None:
    """A broker tells its defaults as well; they are not its own."""
    assert topic_defaults([config("log.segment.bytes", "1073741824", DEFAULT)]) == {}


@pytest.mark.parametrize("source", [2, DYNAMIC_DEFAULT, STATIC])
def test_a_default_that_is_set_goes_by_the_topic_configurations_name(source: int) -> None:
    """In a file or dynamically, of one broker or of all."""
    told = [config("log.segment.bytes", "5000", source), config("message.max.bytes", "77", source)]

    expected = {"segment.bytes": TopicDefault("5000", source), "max.message.bytes": TopicDefault("77", source)}
    assert topic_defaults(told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "180000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "4"),
        ({"log.retention.hours": "2", "log.retention.minutes": None, "log.retention.ms": None}, "7200000"),
        ({"log.retention.hours": "-1"}, "-1"),
        ({"log.retention.minutes": "many"}, "many"),
    ],
)
def test_the_first_name_that_is_set_counts_and_hours_are_milliseconds(
    told: dict[str, str | None], expected: str
) -> None:
    """ServerTopicConfigSynonyms: in the order of the table; KafkaConfig takes any negative retention for no limit."""
    defaults = topic_defaults([config(name, value) for name, value in told.items()])
    assert defaults == {"retention.ms": TopicDefault(expected, STATIC)}


def test_what_a_brokers_own_file_says_of_unclean_leaders_is_told_from_what_was_set_for_all() -> None:
    """What is set for all is read from ZooKeeper; it hides the file's word, which counts again without it."""
    name = "unclean.leader.election.enable"

    assert static_unclean_election([config(name, "false", DYNAMIC_DEFAULT, false=DYNAMIC_DEFAULT, TRUE=STATIC)])
    assert static_unclean_election([config(name, "false", STATIC, false=STATIC)]) is False
    assert static_unclean_election([config(name, "true", DYNAMIC_DEFAULT, true=DYNAMIC_DEFAULT)]) is None
    assert static_unclean_election([]) is None
