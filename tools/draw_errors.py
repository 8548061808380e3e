"""Draw Kafka's error codes, which its jars hold as code, into `kafka_wire/tables/errors.jsonl`.

    python tools/draw_errors.py [--into DIRECTORY] [--java PATH] DIRECTORY_OF_JARS

The jars are the newest Kafka's (4.3.1), whose codes include every older one. Needs Java 17: the rows are
printed by tools/java/DrawErrors.java. Drawing twice gives the same bytes.
"""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tools" / "java" / "DrawErrors.java"
TABLES = ROOT / "kafka_wire" / "tables"

# A program of this size compiles and runs within seconds; one that does not is stuck.
TIMEOUT_S = 120


def main() -> None:
    """Run the program and keep what it prints, after checking that each line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=TABLES, help="where the table is written")
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
