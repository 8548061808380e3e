"""What brokers set as defaults of topic configurations, read from their own settings: pure.

Brokers have these settings by other names, some of them in coarser units by one more name: the first that is set counts.
Source: ServerTopicConfigSynonyms, DescribeConfigsResponse.ConfigSource. Leaves out asking (inquiry), and what follows.
"""

from collections.abc import Iterable, Iterator, Mapping

from controller_core.cluster.topic_config_table import TOPIC_CONFIGS
from controller_core.shell.active import TopicDefault
from kafka_wire.codec import Body

UNCLEAN_ELECTION = "unclean.leader.election.enable"
DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER = 2, 3, 4
"""Sources of a broker's setting that somebody set (DescribeConfigsResponse.ConfigSource); 5 is Kafka's own default."""
SET = frozenset({DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER})

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
OTHER_NAMES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "segment.ms": (("log.roll.hours", HOUR_MS),),
    "segment.jitter.ms": (("log.roll.jitter.hours", HOUR_MS),),
    "flush.ms": (("log.flush.scheduler.interval.ms", 1),),
    "retention.ms": (("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
}
"""By topic configuration: names that come after the first, and what their unit is in the configuration's own."""


def settings_asked() -> list[str]:
    """Name the brokers' settings that may give a default."""
    return sorted({name for topic_name in TOPIC_CONFIGS for name, _ in _names(topic_name)})


def topic_defaults(configs: Iterable[Body]) -> dict[str, TopicDefault]:
    """Read the defaults that are set, by the topic configuration's name, from a DescribeConfigs answer of a broker."""
    told = {
        config["name"]: config for config in configs if config["config_source"] in SET and config["value"] is not None
    }
    defaults: dict[str, TopicDefault] = {}
    for topic_name in TOPIC_CONFIGS:
        found = next(((told[name], unit) for name, unit in _names(topic_name) if name in told), None)
        if found is not None:
            config, unit = found
            defaults[topic_name] = TopicDefault(_in_unit(config["value"], unit), config["config_source"])
    return defaults


def static_unclean_election(configs: Iterable[Body]) -> bool | None:
    """Read whether a broker's own file allows leaders from outside the ISR; None where it says nothing.

    What is set dynamically for all brokers is read from ZooKeeper, where it is known earlier than to the broker.
    """
    said = (
        synonym["value"]
        for config in configs
        if config["name"] == UNCLEAN_ELECTION
        for synonym in config["synonyms"]
        if synonym["source"] == STATIC_BROKER
    )
    value = next(said, None)
    return None if value is None else value.strip().lower() == "true"


def _names(topic_name: str) -> Iterator[tuple[str, int]]:
    first = TOPIC_CONFIGS[topic_name].broker_name
    if first is not None:
        yield first, 1
        yield from OTHER_NAMES.get(topic_name, ())


def _in_unit(text: str, unit: int) -> str:
    """Turn a value into the topic configuration's unit; negative ones mean "no limit" in every unit."""
    if unit == 1:
        return text
    try:
        value = int(text)
    except ValueError:
        return text  # It is the broker's business; it is told as it is.
    return str(value * unit if value >= 0 else -1)
