"""Extraction of the settings of Kafka's nodes from its jars into `kafka_node/configs/setting_table.py`.

    python -m tools.extract_broker_settings DIRECTORY_OF_JARS

It keeps the facts that decide whether a value of a properties file is valid: name, type, default, and rule; and whether Kafka
changes it while a node runs. The table has the
settings of brokers too, so that a setting that only brokers use differs from one that Kafka does not have. The output is
deterministic.
"""

import sys
from pathlib import Path

from tools.kafka_definitions import ROOT, Json, static_fields, version_of, write_table

TABLE = ROOT / "kafka_node" / "configs" / "setting_table.py"
DEFINITIONS = "org.apache.kafka.server.config.AbstractKafkaConfig.CONFIG_DEF"
DYNAMIC = "org.apache.kafka.server.config.DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS"

HEADER = '''"""Settings of nodes of Kafka {version}, sorted by name: generated, do not edit.

`setting_rules` defines the rows. Generate it again with `python -m tools.extract_broker_settings DIRECTORY_OF_JARS`.
Source: AbstractKafkaConfig.CONFIG_DEF and DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS of Kafka {version}.
"""

# ruff: noqa: S108 - a default of Kafka

from kafka_node.configs.config_rules import AnyValue, ConfigType, OneOf, Range
from kafka_node.configs.setting_rules import Setting
'''


def python_rule(rule: Json) -> str:
    """Return one rule as a Python expression."""
    bounds = [rule[bound] for bound in ("least", "most") if rule.get(bound) is not None]
    if bounds and all(isinstance(bound, int) for bound in bounds):  # the others are those of the log cleaner of brokers
        return f"Range({', '.join(map(str, bounds))})"
    # A list without words may have any: Kafka's rule is that it has no duplicates.
    return f"OneOf({tuple(rule['values'])!r})" if rule.get("values") else "AnyValue()"


def python_row(name: str, setting: Json, *, is_dynamic: bool) -> str:
    """Return one setting as a Python expression."""
    facts = f"{name!r}, ConfigType.{setting['type']}, {setting['default']!r}, {python_rule(setting['rule'])}"
    has = {"required": setting["required"], "internal": setting["internal"], "dynamic": is_dynamic}
    marks = "".join(f", is_{mark}=True" for mark, value in has.items() if value)
    return f"Setting({facts}{marks})"


def render(jars: Path) -> str:
    """Return the source of the module, not yet formatted."""
    settings, dynamic = static_fields(jars, DEFINITIONS, DYNAMIC)
    rows = ",\n    ".join(python_row(name, settings[name], is_dynamic=name in dynamic) for name in sorted(settings))
    return "\n".join(
        [
            HEADER.format(version=version_of(jars)),
            f"ROWS = (\n    {rows},\n)",
            "",
            "SETTINGS = {row.name: row for row in ROWS}",
            '"""The rows by name."""',
            "",
        ]
    )


if __name__ == "__main__":
    write_table(TABLE, render(Path(sys.argv[1])))
