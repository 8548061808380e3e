"""Common parts of the generated tables of configs: Kafka's definitions as values, and a formatted file as the result.

Leaves out what a table has of them: `extract_topic_configs`, `extract_broker_settings`. Requires a JDK: tools/java/StaticFields.java is run
from its source.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tools" / "java" / "StaticFields.java"

TIMEOUT_S = 120
"""The program compiles and runs in about three seconds."""

Json = dict[str, Any]


def static_fields(jars: Path, *fields: str) -> list[Json]:
    """Return static fields of Kafka's classes, each as an object by name: of a ConfigDef its definitions, of a map its values as text.

    A set of names is an object of each name by itself.
    """
    command = ["java", "-cp", str(jars / "*"), str(SOURCE), *fields]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    document = json.loads(done.stdout)
    return [document[field] for field in fields]


def version_of(jars: Path) -> str:
    """Return Kafka's version from the name of the kafka-clients jar."""
    (jar,) = jars.glob("kafka-clients-*.jar")
    return jar.stem.removeprefix("kafka-clients-")


def write_table(path: Path, source: str) -> None:
    """Write a module, and format it with the project's formatter."""
    path.write_text(source, encoding="utf-8")
    subprocess.run(["ruff", "format", str(path)], check=True, cwd=ROOT, timeout=TIMEOUT_S)
