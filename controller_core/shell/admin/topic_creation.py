"""CreateTopics, versions 0 to 7, and CreatePartitions, versions 0 to 3 (KIP-195).

Each topic succeeds or fails separately; the core validates it. This module draws the random numbers that the core needs.

After the topics or partitions are written, the response waits until the partitions have leaders that the live brokers know, or until the
request's timeout: a client that sends its next request to another broker finds them there. As in Kafka, the answer is REQUEST_TIMED_OUT
for a topic with a leaderless partition, and for every created topic if the request's timeout is not positive.

From version 5 on the response of CreateTopics contains all configurations of a new topic, each with its source (KIP-525), printed as
Kafka prints them after parsing.

Source: KafkaApis.handleCreateTopicsRequest and handleCreatePartitionsRequest, ControllerApis.createTopics, ZkAdminManager.createTopics,
createPartitions and maybePopulateMetadataAndConfigs, ConfigDef.convertToString.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from random import Random

from controller_core.decisions.topics import TopicCreation
from controller_core.model import Cluster, events
from controller_core.shell.active import ActiveController, Defaults, TopicDefault
from controller_core.shell.admin import responses
from controller_core.shell.admin.mutation_quotas import MutationQuotas
from controller_core.shell.random_topic_ids import draw_place, draw_topic_id
from kafka_node.configs import config_rules, topic_config_table
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""The metadata log of a KRaft quorum."""
TOPICS_STRICT_QUOTA_FROM = 6
"""First version with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""
USE_DEFAULT = -1
"""Value in a request for the cluster's num.partitions or default.replication.factor (KIP-464)."""


ConfigsOf = Callable[[Mapping[str, str]], list[Body]]
"""Lists all configs of a topic, by its own ones."""


class ConfigSource(IntEnum):
    """Sources of values that do not come from brokers (DescribeConfigsResponse.ConfigSource); brokers report their sources."""

    TOPIC = 1
    DEFAULT = 5


async def create_topics(
    active: ActiveController,
    context: RequestContext,
    body: Body,
    random: Random,
    configs_of: ConfigsOf,
    quotas: MutationQuotas,
) -> Body:
    """Create topics, wait until the brokers have them, and answer. `configs_of` lists the configs of a topic with its own ones."""
    results = {name: TopicCreation(failure) for name, failure in refuse_names(body).items()}
    defaults = Defaults()
    if undecided := [topic["name"] for topic in body["topics"] if uses_defaults(topic)]:
        found = await responses.wait_for_defaults(active, body["timeout_ms"])
        if isinstance(found, Failure):
            results |= {name: TopicCreation(found) for name in undecided if name not in results}
        else:
            defaults = found
    event = create_topics_event(body, defaults, random, frozenset(results))
    quota = await quotas.for_request(context, TOPICS_STRICT_QUOTA_FROM)
    if event.topics:
        results |= await quota.submit(active, event, partial(_partitions_created, event))
    leaderless = await _leaderless(active, body, [name for name, result in results.items() if result.failure is None])
    results |= {name: TopicCreation(failure) for name, failure in leaderless.items()}
    response = create_topics_response(body, results, configs_of)
    return {**response, "throttle_time_ms": quota.throttle_ms()}


async def _leaderless(active: ActiveController, body: Body, names: list[str]) -> dict[str, Failure]:
    """Wait until the brokers have what was written for these topics; return failures for those with a leaderless partition."""
    if not names or body["validate_only"] or _leaves_no_time(body):
        return {}
    return await responses.wait_for_leaders(active, names, body["timeout_ms"])


def _leaves_no_time(body: Body) -> bool:
    """Whether the request's effect is to be waited for, and its timeout leaves no time for it."""
    return not body["validate_only"] and body["timeout_ms"] <= 0


def _names(body: Body) -> list[str]:
    """Return the names of the topics; one that is listed twice is answered once."""
    return list(dict.fromkeys(topic["name"] for topic in body["topics"]))


def _partitions_created(event: events.CreateTopics, results: Mapping[str, TopicCreation]) -> int:
    if event.validate_only:
        return 0
    return sum(result.partitions for result in results.values() if result.failure is None)


def uses_defaults(topic: Body) -> bool:
    """Return whether the topic depends on the cluster's defaults: it has no assignment, and a number is not set."""
    return not topic["assignments"] and USE_DEFAULT in {topic["num_partitions"], topic["replication_factor"]}


def refuse_names(body: Body) -> dict[str, Failure]:
    """Refuse topics that are invalid in any state of the cluster. Returns failures by name, with the messages of ControllerApis."""
    names = [topic["name"] for topic in body["topics"]]
    refused = {
        name: Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.") for name in responses.duplicates(names)
    }
    if CLUSTER_METADATA_TOPIC in names:
        message = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
        refused[CLUSTER_METADATA_TOPIC] = Failure(ErrorCode.INVALID_REQUEST, message)
    return refused


def create_topics_event(
    body: Body, defaults: Defaults, random: Random, refused: frozenset[str] = frozenset()
) -> events.CreateTopics:
    """Translate the topics that are not refused yet."""
    return events.CreateTopics(
        tuple(_new_topic(topic, random) for topic in body["topics"] if topic["name"] not in refused),
        body["validate_only"],
        defaults.num_partitions,
        defaults.default_replication_factor,
    )


def _new_topic(topic: Body, random: Random) -> events.NewTopic:
    return events.NewTopic(
        topic["name"],
        draw_topic_id(random),
        topic["num_partitions"],
        topic["replication_factor"],
        {given["partition_index"]: tuple(given["broker_ids"]) for given in topic["assignments"]},
        {config["name"]: config["value"] for config in topic["configs"]},
        draw_place(random),
        draw_place(random),
    )


def create_topics_response(body: Body, results: Mapping[str, TopicCreation], configs_of: ConfigsOf) -> Body:
    """Translate the outcome of each topic."""
    once = _once(configs_of)
    return {"topics": [_result(name, results[name], body, once) for name in _names(body)]}


def _once(configs_of: ConfigsOf) -> ConfigsOf:
    """Return the same function, which is called once for topics with the same configs: most of a request have none of their own."""
    found: dict[frozenset[tuple[str, str]], list[Body]] = {}

    def listed(configs: Mapping[str, str]) -> list[Body]:
        key = frozenset(configs.items())
        if key not in found:
            found[key] = configs_of(configs)
        return found[key]

    return listed


def _result(name: str, result: TopicCreation, body: Body, configs_of: ConfigsOf) -> Body:
    if result.failure is not None:
        return _failed(name, result.failure)
    if _leaves_no_time(body):
        return _failed(
            name,
            responses.timed_out("The topic was created; the request's timeout left no time to wait for the brokers."),
        )
    return {
        "name": name,
        **responses.error_fields(None),
        # A topic that is only validated has no id.
        "topic_id": responses.NO_TOPIC_ID if body["validate_only"] or result.topic_id is None else result.topic_id,
        "num_partitions": result.partitions,
        "replication_factor": result.replication_factor,
        "configs": configs_of(result.configs),
    }


def _failed(name: str, failure: Failure) -> Body:
    return {
        "name": name,
        **responses.error_fields(failure),
        "topic_id": responses.NO_TOPIC_ID,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }


def create_topics_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error."""
    return {"topics": [_failed(name, failure) for name in _names(body)]}


def created_configs(own: Mapping[str, str], broker_defaults: Mapping[str, TopicDefault]) -> list[Body]:
    """List every topic configuration: the topic's value, else the brokers' default for all topics, else Kafka's default.

    The keys of `broker_defaults` are names of topic configurations.
    """
    return [_entry(key, own, broker_defaults) for key in topic_config_table.TOPIC_CONFIGS.values()]


def _entry(key: config_rules.ConfigKey, own: Mapping[str, str], broker_defaults: Mapping[str, TopicDefault]) -> Body:
    if key.name in own:
        text, source = own[key.name], int(ConfigSource.TOPIC)
    elif key.name in broker_defaults:
        text, source = broker_defaults[key.name]
    else:
        text, source = key.default, int(ConfigSource.DEFAULT)
    return {
        "name": key.name,
        "value": printed_value(key, text),
        "read_only": False,
        "config_source": source,
        "is_sensitive": False,
    }


def printed_value(key: config_rules.ConfigKey, text: str) -> str:
    """Print a value as Kafka does after parsing it: without surrounding whitespace, numbers in plain form.

    >>> printed_value(topic_config_table.TOPIC_CONFIGS["cleanup.policy"], " compact , delete ")
    'compact,delete'
    """
    value = key.read(text)
    if isinstance(value, config_rules.InvalidValue):
        return text
    return ",".join(value) if isinstance(value, tuple) else config_rules.java_string(value)


PARTITIONS_STRICT_QUOTA_FROM = 3
"""First version with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


async def create_partitions(
    active: ActiveController, context: RequestContext, body: Body, random: Random, quotas: MutationQuotas
) -> Body:
    """Add partitions, wait until the brokers have them, and answer."""
    results: dict[str, responses.Outcome] = dict(refuse_duplicates(body))
    event = create_partitions_event(body, random, frozenset(results))
    quota = await quotas.for_request(context, PARTITIONS_STRICT_QUOTA_FROM)
    if event.topics:
        results |= await quota.submit(active, event, partial(_partitions_added, event, _sizes(active.cluster, event)))
    results |= await _leaderless(active, body, [name for name, failure in results.items() if failure is None])
    return {**create_partitions_response(body, results), "throttle_time_ms": quota.throttle_ms()}


def _sizes(cluster: Cluster, event: events.CreatePartitions) -> dict[str, int]:
    """Count the partitions of topics before the request."""
    return {new.topic: len(cluster.topics[new.topic].rows) for new in event.topics if new.topic in cluster.topics}


def _partitions_added(
    event: events.CreatePartitions, before: Mapping[str, int], results: Mapping[str, responses.Outcome]
) -> int:
    if event.validate_only:
        return 0
    grown = (new for new in event.topics if results[new.topic] is None)
    return sum(max(0, new.count - before.get(new.topic, new.count)) for new in grown)


def refuse_duplicates(body: Body) -> dict[str, Failure]:
    """Refuse topics that are listed twice in the request."""
    names = responses.duplicates(topic["name"] for topic in body["topics"])
    return {name: Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.") for name in names}


def create_partitions_event(
    body: Body, random: Random, refused: frozenset[str] = frozenset()
) -> events.CreatePartitions:
    """Translate the topics that are not refused yet."""
    topics = [topic for topic in body["topics"] if topic["name"] not in refused]
    return events.CreatePartitions(tuple(_new_partitions(topic, random) for topic in topics), body["validate_only"])


def _new_partitions(topic: Body, random: Random) -> events.NewPartitions:
    given = topic["assignments"]
    assignments = None if given is None else [tuple(assignment["broker_ids"]) for assignment in given]
    return events.NewPartitions(topic["name"], topic["count"], assignments, draw_place(random), draw_place(random))


def create_partitions_response(body: Body, results: Mapping[str, responses.Outcome]) -> Body:
    """Translate the outcome of each topic."""
    no_time = _leaves_no_time(body)
    late = responses.timed_out("The partitions were added; the request's timeout left no time to wait for the brokers.")
    outcomes = {name: late if no_time and results[name] is None else results[name] for name in _names(body)}
    return {"results": [{"name": name, **responses.error_fields(outcome)} for name, outcome in outcomes.items()]}


def create_partitions_refused(_context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer every topic with the same error."""
    return {"results": [{"name": name, **responses.error_fields(failure)} for name in _names(body)]}
