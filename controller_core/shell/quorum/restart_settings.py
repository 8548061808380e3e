"""Settings by which a controller treats restarted brokers beyond Kafka's own rules (ADR 57). Kafka does not have them."""

from collections.abc import Mapping

from controller_core.model.mode_rules import RestartPolicy
from kafka_node.configs.config_rules import AnyValue, ConfigType
from kafka_node.configs.setting_rules import Setting

_FIELDS = {
    "admits_same_directories": "steward.broker.restart.same.directories.enable",
    "admits_after_shutdown": "steward.broker.restart.after.shutdown.enable",
    "elects_suspected_last": "steward.broker.disconnected.elected.last.enable",
}
_SETTINGS = {field: Setting(name, ConfigType.BOOLEAN, "true", AnyValue()) for field, name in _FIELDS.items()}
NAMES = frozenset(_FIELDS.values())


def read_restart_policy(values: Mapping[str, str]) -> RestartPolicy:
    """Return the policy of a properties file. Raises SettingError."""
    return RestartPolicy(
        **{field: bool(setting.read(values.get(setting.name))) for field, setting in _SETTINGS.items()}
    )
