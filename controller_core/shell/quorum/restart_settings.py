"""Settings by which a controller treats restarted and disconnected brokers beyond Kafka's own rules (ADR 57). Kafka does not have them."""

from collections.abc import Mapping

from controller_core.model.mode_rules import RestartPolicy
from kafka_node.configs.config_rules import AnyValue, ConfigType, Range
from kafka_node.configs.setting_rules import Setting

_FIELDS = {
    "admits_same_directories": "steward.broker.restart.same.directories.enable",
    "admits_after_shutdown": "steward.broker.restart.after.shutdown.enable",
    "elects_suspected_last": "steward.broker.disconnected.elected.last.enable",
}
_SETTINGS = {field: Setting(name, ConfigType.BOOLEAN, "true", AnyValue()) for field, name in _FIELDS.items()}
_DISCONNECTED = Setting("steward.broker.disconnected.session.timeout.ms", ConfigType.INT, None, Range(1))
_SHARE = 3
"""Default: this part of the session timeout. By Kafka's defaults 3 s of 9, and brokers send a heartbeat every 2 s."""
NAMES = frozenset((*_FIELDS.values(), _DISCONNECTED.name))


def read_restart_policy(values: Mapping[str, str]) -> RestartPolicy:
    """Return the policy of a properties file. Raises SettingError."""
    return RestartPolicy(
        **{field: bool(setting.read(values.get(setting.name))) for field, setting in _SETTINGS.items()}
    )


def read_disconnected_session_timeout_ms(values: Mapping[str, str], session_timeout_ms: int) -> int:
    """Return the time for the next heartbeat of a broker whose connection has ended. Raises SettingError.

    Not more than a session, so a large value turns the rule off.
    """
    given = _DISCONNECTED.read(values.get(_DISCONNECTED.name))
    assert given is None or isinstance(given, int)
    return max(1, session_timeout_ms // _SHARE if given is None else min(given, session_timeout_ms))
