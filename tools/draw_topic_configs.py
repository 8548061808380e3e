"""Draw the table of topic configs out of Kafka's jars into `controller_core/rules/topic_config_table.py`.

    python tools/draw_topic_configs.py DIRECTORY_OF_JARS

It keeps what decides whether a value is legal: name, type, default, rule, and the broker's setting behind the default, in
the order in which Kafka checks them. It leaves out Kafka's descriptions. Drawing twice gives the same bytes.
Needs a JDK: tools/java/TopicConfigs.java is run from its source.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tools" / "java" / "TopicConfigs.java"
TABLE = ROOT / "controller_core" / "cluster" / "topic_config_table.py"

TIMEOUT_S = 120
"""A JVM compiles and runs the program in about three seconds."""

HEADER = '''"""Kafka {version}'s topic configs in the order in which Kafka validates them: generated, do not edit.

`config_rules` defines the rows. Generate the table again with `python tools/draw_topic_configs.py DIRECTORY_OF_JARS`.
Source: LogConfig.configKeys, ServerTopicConfigSynonyms and MetadataVersion of Kafka {version}.
"""

from controller_core.rules.config_rules import {rules}
from controller_core.rules.config_rules import ConfigType
'''

RULES = ("AnyValue", "ConfigKey", "OneOf", "Range", "RangeOr", "ThrottledReplicas", "VersionName")

Json = dict[str, Any]


def ask_java(jars: Path) -> Json:
    """Run the Java program over the jars and return what it printed."""
    command = ["java", "-cp", str(jars / "*"), str(SOURCE)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    document: Json = json.loads(done.stdout)
    return document


def version_of(jars: Path) -> str:
    """Read Kafka's version from the name of its clients' jar."""
    (jar,) = jars.glob("kafka-clients-*.jar")
    return jar.stem.removeprefix("kafka-clients-")


def python_rule(rule: Json) -> str:
    """Write one rule as a Python expression."""
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


def python_row(config: Json) -> str:
    """Write one config as a Python expression."""
    facts = f"{config['name']!r}, ConfigType.{config['type']}, {config['default']!r}, {python_rule(config['rule'])}"
    return f"ConfigKey({facts}, {config['broker_name']!r})"


def draw(document: Json, version: str) -> str:
    """Write the whole module."""
    names = ", ".join(map(repr, document["versions"]))
    rows = ",\n    ".join(python_row(config) for config in document["configs"])
    return "\n".join(
        [
            HEADER.format(version=version, rules=", ".join(RULES)),
            f"VERSION_NAMES = frozenset(({names}))",
            '"""What message.format.version takes."""',
            "",
            f"ROWS = (\n    {rows},\n)",
            "",
            "TOPIC_CONFIGS = {row.name: row for row in ROWS}",
            '"""The rows by name, in the order of ROWS."""',
            "",
        ]
    )


def main(jars: Path) -> None:
    """Draw the table and let the project's formatter lay it out."""
    TABLE.write_text(draw(ask_java(jars), version_of(jars)), encoding="utf-8")
    subprocess.run(["ruff", "format", str(TABLE)], check=True, cwd=ROOT, timeout=TIMEOUT_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
