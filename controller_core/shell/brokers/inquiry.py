"""Asking a broker for those of its settings that a controller must know (DescribeConfigs of the broker).

ZooKeeper-mode brokers keep defaults for new topics and the border of automatic broker ids in their own configuration, and a
controller that is a broker reads its own; we ask. Leaves out when to ask.
"""

# MERGED controller_core.shell.brokers.inquiry: """What brokers set as defaults of topic configurations, read from their own settings: pure.
# MERGED controller_core.shell.brokers.inquiry:
# MERGED controller_core.shell.brokers.inquiry: Brokers have these settings by other names, some of them in coarser units by one more name: the first that is set counts.
# MERGED controller_core.shell.brokers.inquiry: Source: ServerTopicConfigSynonyms, DescribeConfigsResponse.ConfigSource. Leaves out asking (inquiry), and what follows.
# MERGED controller_core.shell.brokers.inquiry: """
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from controller_core.model.broker import Endpoint
from controller_core.rules.topic_config_table import TOPIC_CONFIGS
from controller_core.shell.active import Defaults, TopicDefault
from controller_core.shell.startup_checks import POLICY_SETTINGS
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body, CodecError
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.node import Node, NodeSettings

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


TIMEOUT_MS = 5_000
"""A broker that takes longer is asked again later, or another is."""
BROKER_RESOURCE = 4
"""ConfigResource.Type.BROKER."""
RESERVED_MAX_ID = "reserved.broker.max.id"
PARTITIONS = "num.partitions"
REPLICATION_FACTOR = "default.replication.factor"
DELETE_TOPICS = "delete.topic.enable"
INTER_BROKER_PROTOCOL = "inter.broker.protocol.version"
SETTINGS_ASKED = (
    RESERVED_MAX_ID,
    PARTITIONS,
    REPLICATION_FACTOR,
    DELETE_TOPICS,
    INTER_BROKER_PROTOCOL,
    *POLICY_SETTINGS,
)

TOPIC_IDS_SINCE = (2, 8)
"""First inter.broker.protocol.version with topic ids (MetadataVersion.isTopicIdsSupported)."""
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})(?:[.-].*)?")


class InquiryError(Exception):
    """The broker did not tell."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What a broker told."""

    defaults: Defaults
    reserved_broker_max_id: int
    policies: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Java classes that judge topics and configurations, by setting; those that are not set are left out."""


async def inquire(broker: int, endpoint: Endpoint, security: BrokerSecurity = UNPROTECTED) -> BrokerSettings:
    """Ask one broker. Raises InquiryError."""
    settings = security.settings(NodeSettings(client_id="steward-controller-inquiry"), endpoint.security_protocol)
    node = Node(endpoint.host, endpoint.port, settings)
    keys = [*SETTINGS_ASKED, *settings_asked()]
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": str(broker), "configuration_keys": keys}
    try:
        question = {"resources": [resource], "include_synonyms": True}
        answer = await node.call(ApiKey.DESCRIBE_CONFIGS, question, timeout_ms=TIMEOUT_MS)
    except (ConnectionFailed, CodecError, UnsupportedVersion) as error:
        raise InquiryError(f"broker {broker}: {error}") from error
    finally:
        await node.close()
    try:
        return _settings(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise InquiryError(f"broker {broker} did not tell its settings: {error!r}") from error


def uses_topic_ids(version: str | None) -> bool:
    """Tell whether an inter.broker.protocol.version has topic ids; one that cannot be read counts as too old.

    >>> [uses_topic_ids(version) for version in ("3.9-IV0", "2.8", "2.7-IV2", "0.10.2", None)]
    [True, True, False, False, False]
    """
    found = None if version is None else _VERSION.fullmatch(version)
    return found is not None and (int(found[1]), int(found[2])) >= TOPIC_IDS_SINCE


def _settings(answer: Body) -> BrokerSettings:
    """Read an answer. Raises ValueError, TypeError or KeyError for what is not there."""
    (result,) = answer["results"]
    if result["error_code"] != ErrorCode.NONE:
        raise ValueError(f"error code {result['error_code']}, {result['error_message']}")
    told = {config["name"]: config["value"] for config in result["configs"]}
    defaults = Defaults(
        int(told[PARTITIONS]),
        int(told[REPLICATION_FACTOR]),
        told[DELETE_TOPICS] == "true",
        static_unclean_election(result["configs"]),
        topic_defaults(result["configs"]),
        uses_topic_ids(told.get(INTER_BROKER_PROTOCOL)),
    )
    policies = {name: class_name for name in POLICY_SETTINGS if (class_name := told.get(name))}
    return BrokerSettings(defaults, int(told[RESERVED_MAX_ID]), policies)
