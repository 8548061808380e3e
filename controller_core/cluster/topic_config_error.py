"""The error of a topic's config map, and how the APIs of Kafka word it. It leaves out when it occurs: see `topic_configs`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigError:
    """What is wrong with a config map, in Kafka's words; on the wire its error code is INVALID_CONFIG.

    `of_value` marks what Kafka throws as a ConfigException: AlterConfigs and IncrementalAlterConfigs name the resource in
    front of those, and of those alone; CreateTopics answers both kinds bare.
    """

    message: str
    of_value: bool = False
