"""Dynamic configs of a node that apply. A controller stores those of nodes unseen, so each node ignores what it cannot apply.

Source: DynamicBrokerConfig.fromPersistentProps, DynamicConfig.Broker.
"""

import re
from collections.abc import Mapping

from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS

_OF_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")

_STORES = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")
"""Settings of keys and certificates: a listener has them by its prefix, and nothing else changes while a node runs."""

_OF_ONE_NODE = (
    *("ssl.", "sasl.", "principal.builder.class"),
    *("listeners", "listener.security.protocol.map", "cordoned.log.dirs"),
)
"""Beginnings of dynamic settings that are no defaults of all nodes."""

_OF_LISTENERS_IN_ALL = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""Settings of a listener that may be defaults of all nodes."""


def applicable(configs: Mapping[str, str], *, of_all_nodes: bool) -> dict[str, str]:
    """Return the dynamic configs that apply: of one node, or those that are the defaults of all nodes.

    >>> applicable({"max.connections": "5", "node.id": "7", "log.segment.bytes": "abc"}, of_all_nodes=True)
    {'max.connections': '5'}
    """
    return {
        name: text for name, text in configs.items() if _is_valid(name, text) and not (of_all_nodes and _is_own(name))
    }


def _is_valid(name: str, text: str) -> bool:
    if name.startswith(_STORES):
        return False
    of_listener = _OF_LISTENER.fullmatch(name)
    setting = SETTINGS.get(of_listener[1] if of_listener else name)
    if setting is None:
        return True
    if not setting.is_dynamic:
        return of_listener is not None  # Kafka refuses only names without the prefix.
    try:
        setting.read(text)
    except SettingError:
        return False
    return True


def _is_own(name: str) -> bool:
    of_listener = _OF_LISTENER.fullmatch(name)
    if of_listener is not None:
        return of_listener[1] not in _OF_LISTENERS_IN_ALL
    return name in SETTINGS and name.startswith(_OF_ONE_NODE)
