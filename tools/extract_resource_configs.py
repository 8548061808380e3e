"""Extraction of the configs of groups and of subscriptions to client metrics from Kafka's jars into `kafka_node/configs/resource_config_table.py`.

    python -m tools.extract_resource_configs DIRECTORY_OF_JARS

The output is deterministic.
"""

import sys
from pathlib import Path

from tools import extract_topic_configs
from tools.kafka_definitions import ROOT, Json, static_fields, version_of, write_table

TABLE = ROOT / "kafka_node" / "configs" / "resource_config_table.py"
GROUPS = "org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF"
BROKER_NAMES = "org.apache.kafka.coordinator.group.GroupConfig.ALL_GROUP_CONFIG_SYNONYMS"
"""Names of brokers' settings by group config, as texts of Java's Optional."""
CLIENT_METRICS = "org.apache.kafka.server.metrics.ClientMetricsConfigs.CONFIG"

HEADER = '''"""Configs of groups and of client metrics in Kafka {version}, in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rules. Generate it again with `make schemas`. Source: GroupConfig and ClientMetricsConfigs of Kafka {version}.
"""

from kafka_node.configs.config_rules import AnyValue, ConfigKey, ConfigType, OffsetReset, OneOf, Range, Words
'''


def render(jars: Path) -> str:
    """Return the source of the module, not yet formatted."""
    groups, names, metrics = static_fields(jars, GROUPS, BROKER_NAMES, CLIENT_METRICS)
    broker_names = {name: text.removeprefix("Optional[").removesuffix("]") for name, text in names.items()}
    of_groups = [
        _row(name, config, broker_names.get(name)) for name, config in groups.items() if not config["internal"]
    ]
    of_metrics = [_row(name, config, None) for name, config in metrics.items()]
    return "\n".join(
        [
            HEADER.format(version=version_of(jars)),
            *_table("GROUP", of_groups, "Configs of groups by name."),
            *_table("CLIENT_METRICS", of_metrics, "Configs of subscriptions to client metrics by name."),
        ]
    )


def _table(of: str, rows: list[str], text: str) -> list[str]:
    lines = (f"    {row}," for row in rows)
    return [
        f"_{of}_ROWS = (",
        *lines,
        ")",
        "",
        f"{of}_CONFIGS = {{row.name: row for row in _{of}_ROWS}}",
        f'"""{text}"""',
        "",
    ]


def _row(name: str, config: Json, broker_name: str | None) -> str:
    rule = config["rule"]
    facts = f"{name!r}, ConfigType.{config['type']}, {config['default']!r}, {_python_rule(rule)}"
    return f"ConfigKey({facts}, {None if broker_name == 'Optional.empty' else broker_name!r})"


def _python_rule(rule: Json) -> str:
    if rule["kind"].endswith("ShareGroupAutoOffsetResetStrategy$Validator"):
        return "OffsetReset()"
    if rule["kind"] == "each_one_of" and not rule["values"]:
        return "Words()"
    return extract_topic_configs.python_rule(rule)


if __name__ == "__main__":
    write_table(TABLE, render(Path(sys.argv[1])))
