"""Extraction of the documentation of configs and settings from Kafka's jars into `kafka_node/configs/documentation.json`.

    python -m tools.extract_config_documentation DIRECTORY_OF_JARS

Internal ones are left out. The output is deterministic.
"""

import json
import sys
from pathlib import Path

from tools import extract_broker_settings, extract_resource_configs, extract_topic_configs
from tools.kafka_definitions import ROOT, Json, static_fields

DOCUMENTATION = ROOT / "kafka_node" / "configs" / "documentation.json"


def documents(jars: Path) -> dict[str, dict[str, str]]:
    """Return the texts of configs and of settings by name."""
    topics, settings, groups, metrics = static_fields(
        jars,
        extract_topic_configs.DEFINITIONS,
        extract_broker_settings.DEFINITIONS,
        extract_resource_configs.GROUPS,
        extract_resource_configs.CLIENT_METRICS,
    )
    return {
        "settings": _texts(settings),
        "topics": _texts(topics),
        "groups": _texts(groups),
        "client metrics": _texts(metrics),
    }


def _texts(definitions: Json) -> dict[str, str]:
    return {
        name: definition["documentation"]
        for name, definition in sorted(definitions.items())
        if not definition["internal"]
    }


if __name__ == "__main__":
    text = json.dumps(documents(Path(sys.argv[1])), indent=0, ensure_ascii=False)
    DOCUMENTATION.write_text(text + "\n", encoding="utf-8")
