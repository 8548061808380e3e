"""Dynamic configs of a cluster that this broker can use; others are left out, with a warning."""

import logging
from collections.abc import Mapping

from kafka_node.configs.config_rules import InvalidValue
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from light_broker.core.dynamic_settings import dynamic_setting
from light_broker.core.metadata_view import ConfigResource

log = logging.getLogger(__name__)


def usable_configs(resource: ConfigResource, given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the configs of a topic or of brokers that this broker can use; those of other resources as they are."""
    if resource.type not in {ConfigResourceType.TOPIC, ConfigResourceType.BROKER}:
        return given
    usable = {}
    for name, text in given.items():
        if (reason := _reason(resource, name, text)) is None:
            usable[name] = text
        else:
            extra = {"resource": f"{resource.type.name}:{resource.name}", "config": name, "reason": reason}
            log.warning("Ignoring a dynamic config", extra=extra)
    return usable


def _reason(resource: ConfigResource, name: str, text: str) -> str | None:
    """Return why a config is not used; None: it is."""
    if resource.type is ConfigResourceType.TOPIC:
        read = TOPIC_CONFIGS[name].read(text) if name in TOPIC_CONFIGS else None
        return read.message if isinstance(read, InvalidValue) else None
    setting = dynamic_setting(name)
    if setting is None:
        return "this broker does not change it while it runs"
    try:
        setting.read(text)
    except SettingError as error:
        return str(error)
    return None
