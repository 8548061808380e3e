"""Extraction of Kafka's error codes from its jars into `kafka_wire/tables/errors.jsonl`.

    python tools/extract_errors.py [--into DIRECTORY] [--java PATH] DIRECTORY_OF_JARS

The jars are those of the newest Kafka (4.3.1), whose codes include all older ones. Requires Java 17:
tools/java/ErrorCodes.java prints the rows. The output is deterministic.
"""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tools" / "java" / "ErrorCodes.java"
TABLES = ROOT / "kafka_wire" / "tables"

TIMEOUT_S = 120
"""The program compiles and runs within seconds."""


def main() -> None:
    """Run the program, and store its output after checking that each line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=TABLES, help="directory of the table")
    parser.add_argument("--java", default="java", help="the java command")
    parser.add_argument("jars", metavar="DIRECTORY_OF_JARS")
    arguments = parser.parse_args()
    command = [arguments.java, "-cp", f"{arguments.jars}/*", str(PROGRAM)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=TIMEOUT_S)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    target = arguments.into / "errors.jsonl"
    target.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    print(f"{target.name}: {len(rows)} error codes")


if __name__ == "__main__":
    main()
