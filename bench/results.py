"""The results file: the machine, and one row for each figure, the latest of each.

A row has `name` (the number of its promise, if any, and the figure's name), `ours` and `peer` (medians of Steward and the peer in `unit`),
`ratio` (greater is better, in any unit), `at_least` (the promised ratio, or null), and the circumstances of the measurement. Some rows
have `also`: further figures of Steward's side from the same runs.

A run replaces the rows of the same names and keeps the others, so that benchmarks can be run one by one. The file contains no host name
and no path. The repository has its history.
"""

import datetime as dt
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.harness import Better, Row, Side
from lab.downloads.jars import KAFKA_VERSION, java

LATEST = Path(__file__).parent / "results" / "latest.json"

DIGITS = 4
"""Significant digits: more than the precision of any of these figures."""

VERSION_TIMEOUT_S = 60
"""A tenth of a second on an idle machine."""

Document = dict[str, Any]


def machine() -> Document:
    """Describe the machine."""
    asked = subprocess.run([java(), "-version"], check=True, capture_output=True, text=True, timeout=VERSION_TIMEOUT_S)
    found = re.search(r'version "([^"]+)"', asked.stderr)
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "java": found[1] if found else "unknown",
        "kafka": KAFKA_VERSION,
    }


def load_average() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 1)


def document(row: Row, load: float, now: dt.datetime) -> Document:
    """Return a row's object in the file; `load` is the load average of its measurement."""
    return {
        "name": f"{row.promise} {row.name}".strip(),
        "what": row.what,
        "ours": _rounded(row.ours.median),
        "peer": _rounded(row.peer.median),
        "unit": row.unit,
        "ratio": _rounded(row.ratio),
        "at_least": None if row.at_least is None else _rounded(row.at_least),
        "peer_is": row.peer_is,
        "better": row.better.value,
        "ours_range": _range(row.ours),
        "peer_range": _range(row.peer),
        "runs": row.runs,
        "date": now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "load_average": load,
        **({"also": {what: _rounded(figure) for what, figure in row.also.items()}} if row.also else {}),
    }


def row_of(document: Mapping[str, Any]) -> Row:
    """Return the row of an object of the file, with the digits that the file has."""
    promise, _, name = document["name"].rpartition(" ")
    return Row(
        name,
        document["what"],
        document["peer_is"],
        document["unit"],
        Better(document["better"]),
        Side(document["ours"], *document["ours_range"]),
        Side(document["peer"], *document["peer_range"]),
        document["runs"],
        promise,
        document["at_least"],
        document.get("also", {}),
    )


def merged(present: Sequence[Document], new: Sequence[Document]) -> list[Document]:
    """Replace rows by new ones of the same name; sorted by name."""
    by_name = {row["name"]: row for row in (*present, *new)}
    return [by_name[name] for name in sorted(by_name)]


def read(path: Path = LATEST) -> list[Document]:
    """Return the rows of the file; none without a file."""
    return list(json.loads(path.read_text(encoding="utf-8"))["rows"]) if path.is_file() else []


def write(rows: Sequence[Document], on: Mapping[str, Any], path: Path = LATEST) -> None:
    """Write the file: the rows, and the machine that they were measured `on`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": dict(on), "rows": list(rows)}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _range(side: Side) -> list[float]:
    return [_rounded(side.lowest), _rounded(side.highest)]


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
