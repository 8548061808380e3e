"""Types of resources that have configs, in requests and in metadata."""

import re
from enum import IntEnum

NODE_ID = re.compile(r"[+-]?[0-9]{1,10}")
"""Name of a node's resource, its id: what Java reads as an int, whose largest has ten digits."""


class ConfigResourceType(IntEnum):
    """Types of resources with dynamic configs (Kafka's ConfigResource.Type)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def resource_type_name(number: int) -> str:
    """Return the name of a type; a number that is not known is UNKNOWN (ConfigResource.Type.forId)."""
    known = number in set(ConfigResourceType)
    return ConfigResourceType(number).name if known else ConfigResourceType.UNKNOWN.name
