"""Reading of the settings that every node has, controller or broker, from the values of Kafka's properties file.

Source: KafkaConfig, AbstractKafkaConfig.
"""

from collections.abc import Mapping
from pathlib import Path

from kafka_node.configs.config_rules import ConfigValue
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.security.settings import SecurityProtocol

LISTENERS = "listeners"
PROTOCOL_MAP = "listener.security.protocol.map"


def setting_value(values: Mapping[str, str], name: str) -> ConfigValue | None:
    """Return the value of a setting, or its default. Raises SettingError."""
    return SETTINGS[name].read(values.get(name))


def setting_number(values: Mapping[str, str], name: str) -> int:
    """Return a whole number. Raises SettingError."""
    value = setting_value(values, name)
    assert isinstance(value, int)
    return value


def setting_list(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return a list without duplicates, which Kafka removes too."""
    value = setting_value(values, name)
    assert value is None or isinstance(value, tuple)
    return tuple(dict.fromkeys(value or ()))


def read_node_id(values: Mapping[str, str]) -> int:
    """Return the id; broker.id is an older name of it."""
    found = {int(str(setting_value(values, name))) for name in ("node.id", "broker.id") if name in values}
    if len(found) > 1:
        raise SettingError("You must set `node.id` to the same value as `broker.id`.")
    return found.pop() if found else setting_number(values, "node.id")


def read_protocols(values: Mapping[str, str], names: tuple[str, ...]) -> dict[str, SecurityProtocol]:
    """Return the security protocols by listener name, with Kafka's defaults for controller listeners."""
    found: dict[str, SecurityProtocol] = {}
    for entry in filter(None, (part.strip() for part in str(setting_value(values, PROTOCOL_MAP)).split(","))):
        name, _, protocol = entry.rpartition(":")
        try:
            found[name.strip().upper()] = SecurityProtocol(protocol.strip().upper())
        except ValueError:
            raise SettingError(f"Invalid security protocol `{protocol}` defined in {PROTOCOL_MAP}") from None
    if PROTOCOL_MAP not in values:
        spoken = {*names, *(entry.partition(":")[0].upper() for entry in setting_list(values, LISTENERS))}
        if not spoken & {"SSL", "SASL_SSL", "SASL_PLAINTEXT"}:
            found |= {name.upper(): SecurityProtocol.PLAINTEXT for name in names}
    return found


def read_directories(values: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the log directories; log.dirs overrides log.dir. Raises SettingError."""
    name = "log.dirs" if "log.dirs" in values else "log.dir"
    directories = setting_list(values, name)
    if not directories or not all(directories):
        raise SettingError("Name at least one log directory in log.dirs or log.dir.")
    return tuple(map(Path, directories))
