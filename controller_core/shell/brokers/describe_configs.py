"""Request for the broker settings that the controller needs (DescribeConfigs of a broker).

ZooKeeper-mode brokers keep the defaults of new topics and the limit of automatic broker ids in their own configuration. Kafka's
controller is a broker and reads its own; Steward requests them.

Brokers have the defaults of topic configurations under other names, some of them in addition in coarser units: the first one that is
set applies. Source: ServerTopicConfigSynonyms, DescribeConfigsResponse.ConfigSource.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controller_core.model import Endpoint
from controller_core.model.settings import UNCLEAN_ELECTION
from controller_core.shell import active, startup_checks
from kafka_node.configs.topic_config_table import TOPIC_CONFIGS
from kafka_node.configs.topic_defaults import broker_names, in_unit
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.codec import CodecError
from kafka_wire.net.client import ConnectionFailed, Node, NodeSettings, UnsupportedVersion

TIMEOUT_MS = 5_000
"""If a broker takes longer, it or another one is asked later."""
BROKER_RESOURCE = 4
"""ConfigResource.Type.BROKER."""
DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER = 2, 3, 4
"""Sources of a broker's setting that was set explicitly (DescribeConfigsResponse.ConfigSource); 5 is Kafka's default."""
SET = frozenset({DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER})
RESERVED_MAX_ID = "reserved.broker.max.id"
PARTITIONS = "num.partitions"
REPLICATION_FACTOR = "default.replication.factor"
DELETE_TOPICS = "delete.topic.enable"
INTER_BROKER_PROTOCOL = "inter.broker.protocol.version"
REQUESTED_SETTINGS = (
    RESERVED_MAX_ID,
    PARTITIONS,
    REPLICATION_FACTOR,
    DELETE_TOPICS,
    INTER_BROKER_PROTOCOL,
    *startup_checks.POLICY_SETTINGS,
)
TOPIC_IDS_SINCE = (2, 8)
"""First inter.broker.protocol.version with topic ids (MetadataVersion.isTopicIdsSupported)."""
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})(?:[.-].*)?")


class BrokerSettingsError(Exception):
    """The broker did not return its settings."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker."""

    defaults: active.Defaults
    reserved_broker_max_id: int
    policies: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Java classes of policies for topics and configurations (KIP-108, KIP-133), by setting; settings that are not set are omitted."""


async def read_broker_settings(
    broker: int, endpoint: Endpoint, security: BrokerSecurity = UNPROTECTED
) -> BrokerSettings:
    """Request the settings of one broker. Raises BrokerSettingsError."""
    settings = security.settings(NodeSettings(client_id="steward-controller-inquiry"), endpoint.security_protocol)
    node = Node(endpoint.host, endpoint.port, settings)
    keys = [*REQUESTED_SETTINGS, *topic_default_settings()]
    resource = {"resource_type": BROKER_RESOURCE, "resource_name": str(broker), "configuration_keys": keys}
    try:
        request = {"resources": [resource], "include_synonyms": True}
        answer = await node.call(ApiKey.DESCRIBE_CONFIGS, request, timeout_ms=TIMEOUT_MS)
    except (ConnectionFailed, CodecError, UnsupportedVersion) as error:
        raise BrokerSettingsError(f"broker {broker}: {error}") from error
    finally:
        await node.close()
    try:
        return _settings(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokerSettingsError(f"broker {broker} returned unexpected settings: {error!r}") from error


def _settings(answer: Body) -> BrokerSettings:
    """Read the settings from an answer. Raises ValueError, TypeError or KeyError if any is missing or invalid."""
    (result,) = answer["results"]
    if result["error_code"] != ErrorCode.NONE:
        raise ValueError(f"error code {result['error_code']}, {result['error_message']}")
    values = {config["name"]: config["value"] for config in result["configs"]}
    defaults = active.Defaults(
        int(values[PARTITIONS]),
        int(values[REPLICATION_FACTOR]),
        values[DELETE_TOPICS] == "true",
        static_unclean_election(result["configs"]),
        topic_defaults(result["configs"]),
        uses_topic_ids(values.get(INTER_BROKER_PROTOCOL)),
    )
    policies = {name: class_name for name in startup_checks.POLICY_SETTINGS if (class_name := values.get(name))}
    return BrokerSettings(defaults, int(values[RESERVED_MAX_ID]), policies)


def topic_default_settings() -> list[str]:
    """Return the names of all broker settings that may set a topic default."""
    return sorted({name for topic_name in TOPIC_CONFIGS for name, _ in broker_names(topic_name)})


def topic_defaults(configs: Iterable[Body]) -> dict[str, active.TopicDefault]:
    """Return the defaults that are set in a broker's DescribeConfigs answer, by the topic configuration's name."""
    values = {
        config["name"]: config for config in configs if config["config_source"] in SET and config["value"] is not None
    }
    defaults: dict[str, active.TopicDefault] = {}
    for topic_name in TOPIC_CONFIGS:
        found = next(((values[name], unit) for name, unit in broker_names(topic_name) if name in values), None)
        if found is not None:
            config, unit = found
            defaults[topic_name] = active.TopicDefault(in_unit(config["value"], unit), config["config_source"])
    return defaults


def static_unclean_election(configs: Iterable[Body]) -> bool | None:
    """Return unclean.leader.election.enable of a broker's own file; None if the file does not set it.

    The dynamic default of all brokers is read from ZooKeeper, which has it earlier than the broker.
    """
    values = (
        synonym["value"]
        for config in configs
        if config["name"] == UNCLEAN_ELECTION
        for synonym in config["synonyms"]
        if synonym["source"] == STATIC_BROKER
    )
    value = next(values, None)
    return None if value is None else value.strip().lower() == "true"


def uses_topic_ids(version: str | None) -> bool:
    """Return whether an inter.broker.protocol.version has topic ids; False for one that cannot be parsed.

    >>> [uses_topic_ids(version) for version in ("3.9-IV0", "2.8", "2.7-IV2", "0.10.2", None)]
    [True, True, False, False, False]
    """
    found = None if version is None else _VERSION.fullmatch(version)
    return found is not None and (int(found[1]), int(found[2])) >= TOPIC_IDS_SINCE
