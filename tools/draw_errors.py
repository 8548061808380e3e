"""Draw Kafka's error codes, which its jars hold as code, into `kafka_wire/tables/errors.jsonl`.

    python tools/draw_errors.py DIRECTORY_OF_JARS

The jars are the newest Kafka's (4.3.1), whose codes include every older one. Needs `java` 17 on the path: the rows are
printed by tools/java/DrawErrors.java. Drawing twice gives the same bytes.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tools" / "java" / "DrawErrors.java"
TABLE = ROOT / "kafka_wire" / "tables" / "errors.jsonl"

# A program of this size compiles and runs within seconds; one that does not is stuck.
TIMEOUT_S = 120


def main(jars: str) -> None:
    """Run the program and keep what it prints, after checking that each line is JSON."""
    command = ["java", "-cp", f"{jars}/*", str(PROGRAM)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=TIMEOUT_S)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    TABLE.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    print(f"{TABLE.name}: {len(rows)} error codes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
