"""Kafka's documentation of configs. That it is Kafka's is shown with Kafka 4.3 itself in `tests/light_broker/test_kafka_tools.py`."""

from kafka_node.configs.documentation import setting_documentation, topic_documentation
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS


def test_every_config_that_is_described_has_a_text() -> None:
    """ConfigDef.ConfigKey.documentation; internal settings have none."""
    settings = {name for name, setting in SETTINGS.items() if not setting.is_internal}

    assert {name for name in SETTINGS if setting_documentation(name) is not None} == settings
    assert [name for name in TOPIC_CONFIGS if topic_documentation(name) is None] == []
