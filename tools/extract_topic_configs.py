"""Extraction of the topic configs of Kafka 3.9 and 4 from Kafka's jars into `kafka_node/configs/topic_config_table.py` and `_4.py`.

    python -m tools.extract_topic_configs DIRECTORY_OF_JARS_OF_3_9 DIRECTORY_OF_JARS_OF_4

It keeps the facts that decide whether a value is valid: name, type, default, rule, and the broker setting of the default, in
the order in which Kafka validates them. The output is deterministic.
"""

import re
import sys
from pathlib import Path

from tools.kafka_definitions import ROOT, Json, static_fields, version_of, write_table

FOLDER = ROOT / "kafka_node" / "configs"
TABLES = (FOLDER / "topic_config_table.py", FOLDER / "topic_config_table_4.py")
DEFINITIONS = "org.apache.kafka.storage.internals.log.LogConfig.CONFIG"
BROKER_NAMES = "org.apache.kafka.server.config.ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS"
"""Names of brokers' settings by topic config."""
VERSIONS = "org.apache.kafka.server.common.MetadataVersion.IBP_VERSIONS"
"""Versions by the valid values of message.format.version, which Kafka 4 does not have."""
VERSION_RULE = "VersionName(VERSION_NAMES)"

HEADER = '''"""Kafka {version}'s topic configs in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rules. Generate it again with `make schemas`. Internal configs are left out.
Source: {sources} of Kafka {version}.
"""

from kafka_node.configs.config_rules import {names}
'''

SOURCES = "LogConfig.configKeys and ServerTopicConfigSynonyms"
SOURCES_WITH_VERSIONS = "LogConfig.configKeys, ServerTopicConfigSynonyms and MetadataVersion"
NAMES = ("AnyValue", "ConfigKey", "ConfigType", "OneOf", "Range", "RangeOr", "ThrottledReplicas")


def python_rule(rule: Json) -> str:
    """Return one rule as a Python expression."""
    kind = rule["kind"]
    if kind == "any":
        return "AnyValue()"
    if kind == "range":
        return f"Range({rule['least']})" if rule["most"] is None else f"Range({rule['least']}, {rule['most']})"
    if kind in ("one_of", "each_one_of"):
        return f"OneOf({tuple(rule['values'])!r}{', names_empty=True' if rule.get('names_empty') else ''})"
    if kind.endswith("MetadataVersionValidator"):
        return VERSION_RULE
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
    configs, broker_names = static_fields(jars, DEFINITIONS, BROKER_NAMES)
    shown = {name: config for name, config in configs.items() if not config["internal"]}
    rows = [python_row(name, config, broker_names.get(name)) for name, config in shown.items()]
    has_versions = any(VERSION_RULE in row for row in rows)
    names = (*NAMES, "VersionName") if has_versions else NAMES
    sources = SOURCES_WITH_VERSIONS if has_versions else SOURCES
    return "\n".join(
        [
            HEADER.format(version=version_of(jars), names=", ".join(names), sources=sources),
            *(version_names(jars) if has_versions else ()),
            "ROWS = (",
            *(f"    {row}," for row in rows),
            ")",
            "",
            "TOPIC_CONFIGS = {row.name: row for row in ROWS}",
            '"""The rows by name, in the order of ROWS."""',
            "",
        ]
    )


def version_names(jars: Path) -> list[str]:
    """Return the lines that define VERSION_NAMES."""
    (versions,) = static_fields(jars, VERSIONS)
    names = ", ".join(map(repr, sorted(versions)))
    return [f"VERSION_NAMES = frozenset(({names}))", '"""Valid values of message.format.version."""', ""]


if __name__ == "__main__":
    for table, directory in zip(TABLES, sys.argv[1:], strict=True):
        write_table(table, render(Path(directory)))
