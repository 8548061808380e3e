"""Settings that a light broker applies while it runs."""

from kafka_node.configs.setting_rules import Setting
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.configs.topic_defaults import broker_names
from light_broker.core.replication_quota import DYNAMIC_ONLY

DYNAMIC_SETTINGS = frozenset(
    {
        setting
        for name in TOPIC_CONFIGS
        for setting, unit in broker_names(name, TOPIC_CONFIGS)
        if unit == 1 and setting in SETTINGS
    }
    - {"log.flush.scheduler.interval.ms"}
    | {
        "background.threads",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
    }
)
"""Settings that may be changed while the broker runs (DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS, without those of parts that it lacks)."""

WITHOUT_EFFECT = frozenset(
    name
    for name, setting in SETTINGS.items()
    if setting.is_dynamic and name.startswith(("sasl.kerberos.", "sasl.login."))
)
"""Settings of logins that this broker does not have: changes are accepted as by Kafka, which uses them only with such a login."""


def dynamic_setting(name: str) -> Setting | None:
    """Return a setting that dynamic configs of brokers may have; None for others."""
    is_setting = name in DYNAMIC_SETTINGS or name in WITHOUT_EFFECT
    return SETTINGS[name] if is_setting else DYNAMIC_ONLY.get(name)
