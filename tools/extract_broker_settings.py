"""Extraction of the settings of Kafka's nodes from its jars into `controller_core/shell/quorum/setting_table.py`.

    python tools/extract_broker_settings.py DIRECTORY_OF_JARS

It keeps the facts that decide whether a value of a properties file is valid: name, type, default, and rule. The table has the
settings of brokers too, so that a setting that only brokers use differs from one that Kafka does not have. The output is
deterministic. Requires a JDK: tools/java/BrokerSettings.java is run from its source.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tools" / "java" / "BrokerSettings.java"
TABLE = ROOT / "controller_core" / "shell" / "quorum" / "setting_table.py"

TIMEOUT_S = 120
"""The program compiles and runs in about three seconds."""

HEADER = '''"""Settings of nodes of Kafka {version}, sorted by name: generated, do not edit.

`setting_rules` defines the rows. Generate it again with `python tools/extract_broker_settings.py DIRECTORY_OF_JARS`.
Source: AbstractKafkaConfig.CONFIG_DEF of Kafka {version}.
"""

# ruff: noqa: S108 - a default of Kafka

from controller_core.rules.config_rules import AnyValue, ConfigType, OneOf, Range
from controller_core.shell.quorum.setting_rules import Setting
'''

TYPES = {"CLASS": "STRING", "PASSWORD": "STRING", "SHORT": "INT"}
"""Types that are read as another one: no setting of a controller has them, except passwords, which are text."""

Json = dict[str, Any]


def run_java(jars: Path) -> list[Json]:
    """Run the Java program with the jars and return its settings."""
    command = ["java", "-cp", str(jars / "*"), str(SOURCE)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    settings: list[Json] = json.loads(done.stdout)
    return settings


def version_of(jars: Path) -> str:
    """Return Kafka's version from the name of the kafka-clients jar."""
    (jar,) = jars.glob("kafka-clients-*.jar")
    return jar.stem.removeprefix("kafka-clients-")


def python_rule(rule: Json) -> str:
    """Return one rule as a Python expression."""
    bounds = [rule[bound] for bound in ("least", "most") if rule.get(bound) is not None]
    if bounds and all(isinstance(bound, int) for bound in bounds):  # the others are those of the log cleaner of brokers
        return f"Range({', '.join(map(str, bounds))})"
    # A list without words may have any: Kafka's rule is that it has no duplicates.
    return f"OneOf({tuple(rule['words'])!r})" if rule.get("words") else "AnyValue()"


def python_row(setting: Json) -> str:
    """Return one setting as a Python expression."""
    kind = TYPES.get(setting["type"], setting["type"])
    facts = f"{setting['name']!r}, ConfigType.{kind}, {setting['default']!r}, {python_rule(setting['rule'])}"
    return f"Setting({facts}{', is_required=True' if setting['required'] else ''})"


def render(settings: list[Json], version: str) -> str:
    """Return the source of the module."""
    rows = ",\n    ".join(map(python_row, settings))
    return "\n".join(
        [
            HEADER.format(version=version),
            f"ROWS = (\n    {rows},\n)",
            "",
            "SETTINGS = {row.name: row for row in ROWS}",
            '"""The rows by name."""',
            "",
        ]
    )


def main(jars: Path) -> None:
    """Write the table, and format it with the project's formatter."""
    TABLE.write_text(render(run_java(jars), version_of(jars)), encoding="utf-8")
    subprocess.run(["ruff", "format", str(TABLE)], check=True, cwd=ROOT, timeout=TIMEOUT_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
