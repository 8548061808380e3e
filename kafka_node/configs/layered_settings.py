"""Values of a node's settings, by Kafka's names: the properties file, and what dynamic configs override.

`kafka_node.configs.setting_table` has each setting's type, default and rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from kafka_node.configs.config_rules import ConfigValue
from kafka_node.configs.setting_table import SETTINGS


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one node at one time. Every value was checked when it was read or set. Some are secret, so none is in the `repr`."""

    node_id: int
    file: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of the properties file, as text."""
    cluster: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Dynamic configs of all brokers."""
    own: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Dynamic configs of this node, which come first."""

    @classmethod
    def of_file(cls, node_id: int, values: Mapping[str, str]) -> Self:
        """Return the settings of a properties file; each name of the node's id has it (KafkaConfig.populateSynonyms)."""
        return cls(node_id, {**values, "node.id": str(node_id), "broker.id": str(node_id)})

    def with_dynamic(self, cluster: Mapping[str, str], own: Mapping[str, str]) -> Self:
        """Return the settings with other dynamic configs."""
        return replace(self, cluster=cluster, own=own)

    def text(self, name: str) -> str | None:
        """Return the value of a setting as text; None: it has neither a value nor a default."""
        for values in (self.own, self.cluster, self.file):
            if name in values:
                return values[name]
        return SETTINGS[name].default

    def value(self, name: str) -> ConfigValue | None:
        """Return the value of a setting; None: it has neither a value nor a default."""
        text = self.text(name)
        return None if text is None else _parsed(name, text)

    def number(self, name: str) -> int:
        """Return the value of a setting of type INT or LONG."""
        found = self.value(name)
        assert isinstance(found, int), name
        return found

    def flag(self, name: str) -> bool:
        """Return the value of a setting of type BOOLEAN."""
        found = self.value(name)
        assert isinstance(found, bool), name
        return found

    def words(self, name: str) -> tuple[str, ...]:
        """Return the value of a setting of type LIST; empty without a value."""
        found = self.value(name)
        assert found is None or isinstance(found, tuple), name
        return found or ()


@lru_cache(maxsize=1024)
def _parsed(name: str, text: str) -> ConfigValue | None:
    """Return the value of a text. Each request asks for some, and there are some 400 names, of which few have more than one text."""
    return SETTINGS[name].read(text)
