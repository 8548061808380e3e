"""What becomes of a topic's config map under the operations of IncrementalAlterConfigs (KIP-339).

Whether the result is legal is asked afterwards (`topic_configs`). Source: Kafka 3.9's ConfigAdminManager and the checks that
its request handler makes before. Leaves out configs of brokers.

APPEND and SUBTRACT are for LIST configs alone. They begin from the topic's own value or, where it has none, from Kafka's
default, not the brokers'; items are compared as they stand between commas, blanks included, as Kafka does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from controller_core.cluster.config_values import ConfigType
from controller_core.cluster.topic_config_table import TOPIC_CONFIGS
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode


class OpType(IntEnum):
    """What to do with a config, by the numbers of the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """One operation on one config; the value of a DELETE is not looked at."""

    name: str
    kind: OpType
    value: str | None = None


def alter_configs(configs: Mapping[str, str], ops: Sequence[ConfigOp]) -> dict[str, str] | Failure:
    """Return the map after all operations in their order, or why Kafka refuses them.

    >>> alter_configs({}, [ConfigOp("cleanup.policy", OpType.APPEND, "compact")])
    {'cleanup.policy': 'delete,compact'}
    """
    if len({op.name for op in ops}) < len(ops):
        return Failure(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls := [op.name for op in ops if op.kind is not OpType.DELETE and op.value is None]:
        return Failure(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    altered = dict(configs)
    for op in ops:
        if op.kind is OpType.DELETE:
            altered.pop(op.name, None)
        elif op.kind is OpType.SET:
            altered[op.name] = op.value or ""
        elif (words := no_list_because(op)) is not None:
            return Failure(ErrorCode.INVALID_CONFIG, words)
        else:
            altered[op.name] = altered_list(altered.get(op.name, TOPIC_CONFIGS[op.name].default), op)
    return altered


def no_list_because(op: ConfigOp) -> str | None:
    """Return why a config cannot be appended to or subtracted from, or None."""
    if op.name not in TOPIC_CONFIGS:
        return f"Unknown config name: {op.name}"
    if TOPIC_CONFIGS[op.name].kind is not ConfigType.LIST:
        return f"Config value {op.kind.name.lower()} is not allowed for config key: {op.name}"
    return None


def altered_list(before: str, op: ConfigOp) -> str:
    """Append items that are not there, or take items away, each once."""
    items = split(before) if before else []
    named = split(op.value or "")
    if op.kind is OpType.APPEND:
        return ",".join([*items, *(item for item in named if item not in items)])
    for item in named:
        if item in items:
            items.remove(item)
    return ",".join(items)


def split(text: str) -> list[str]:
    """Split as Java does: empty items at the end are dropped, unless there is no comma at all."""
    items = text.split(",")
    while "," in text and items and not items[-1]:
        items.pop()
    return items
