"""Extraction of the topic configs from Kafka's jars into `kafka_node/configs/topic_config_table.py`.

    python -m tools.extract_topic_configs DIRECTORY_OF_JARS

It keeps the facts that decide whether a value is valid: name, type, default, rule, and the broker setting of the default, in
the order in which Kafka validates them. The output is deterministic.
"""

import re
import sys
from pathlib import Path

from tools.kafka_definitions import ROOT, Json, static_fields, version_of, write_table

TABLE = ROOT / "kafka_node" / "configs" / "topic_config_table.py"
FIELDS = (
    "org.apache.kafka.storage.internals.log.LogConfig.CONFIG",
    "org.apache.kafka.server.config.ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS",
    "org.apache.kafka.server.common.MetadataVersion.IBP_VERSIONS",
)
"""Definitions of configs, names of brokers' settings by topic config, and versions by the valid values of message.format.version."""

HEADER = '''"""Kafka {version}'s topic configs in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rules. Generate it again with `python -m tools.extract_topic_configs DIRECTORY_OF_JARS`.
Source: LogConfig.configKeys, ServerTopicConfigSynonyms and MetadataVersion of Kafka {version}.
"""

from kafka_node.configs.config_rules import {names}
'''

NAMES = ("AnyValue", "ConfigKey", "ConfigType", "OneOf", "Range", "RangeOr", "ThrottledReplicas", "VersionName")


def python_rule(rule: Json) -> str:
    """Return one rule as a Python expression."""
    kind = rule["kind"]
    if kind == "any":
        return "AnyValue()"
    if kind == "range":
        return f"Range({rule['least']})" if rule["most"] is None else f"Range({rule['least']}, {rule['most']})"
    if kind in ("one_of", "each_one_of"):
        return f"OneOf({tuple(rule['values'])!r})"
    if kind.endswith("MetadataVersionValidator"):
        return "VersionName(VERSION_NAMES)"
    if kind.endswith("ThrottledReplicaListValidator"):
        return "ThrottledReplicas()"
    if match := re.fullmatch(r"\[(-?\d+),\.\.\.,(-?\d+)\] or (-?\d+)", rule.get("text", "")):
        return f"RangeOr({', '.join(match.groups())})"
    raise ValueError(f"No Python rule for Kafka's {rule}: add one to config_rules and to python_rule.")


def python_row(name: str, config: Json, broker_name: str | None) -> str:
    """Return one config as a Python expression."""
    facts = f"{name!r}, ConfigType.{config['type']}, {config['default']!r}, {python_rule(config['rule'])}"
    return f"ConfigKey({facts}, {broker_name!r})"


def render(jars: Path) -> str:
    """Return the source of the module, not yet formatted."""
    configs, broker_names, versions = static_fields(jars, *FIELDS)
    names = ", ".join(map(repr, sorted(versions)))
    rows = ",\n    ".join(python_row(name, config, broker_names.get(name)) for name, config in configs.items())
    return "\n".join(
        [
            HEADER.format(version=version_of(jars), names=", ".join(NAMES)),
            f"VERSION_NAMES = frozenset(({names}))",
            '"""Valid values of message.format.version."""',
            "",
            f"ROWS = (\n    {rows},\n)",
            "",
            "TOPIC_CONFIGS = {row.name: row for row in ROWS}",
            '"""The rows by name, in the order of ROWS."""',
            "",
        ]
    )


if __name__ == "__main__":
    write_table(TABLE, render(Path(sys.argv[1])))
