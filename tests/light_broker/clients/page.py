"""Drawing of `docs/client-tests.md`: Kafka's client tests, and how many pass against Kafka 4.3 and against the light broker.

    python -m tests.light_broker.clients.page KAFKA.json LIGHT.json

The files have the lines that `python -m lab.peers.client_tests` printed. Classes and cases are those of the jar; the reasons are those of
`exceptions.py`. A case that did not pass and has no reason is open.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from lab.downloads.jars import NEWEST_KAFKA_VERSION
from lab.peers.client_tests import Case, Outcome, Outcomes, Status, client_test_jars
from tests.light_broker.clients.exceptions import reason_of

ROOT = Path(__file__).resolve().parents[3]

PAGE = ROOT / "docs" / "client-tests.md"

OPEN = "open"
"""Reason of a case that has none."""

HEADER = """# Kafka's client tests and the light broker

Drawn by `tests/light_broker/clients/page.py` from `kafka-clients-integration-tests-{version}-test.jar` and runs of `lab/peers/client_tests.py`, which
starts one broker as a process: `steward broker --standalone`, and Kafka {version} in the same way. A case for several brokers gets one, and its
topics get one replica. Excepted cases are not run; `tests/light_broker/clients/exceptions.py` has them. A case that runs with several
settings counts once, and passes when it does with each.

{classes} classes with {cases} cases; {kafka} pass against Kafka, {light} against the light broker; {open} are open.

| class | cases | pass on Kafka {version} | pass on the light broker | exceptions |
| --- | --- | --- | --- | --- |
"""


def cases_of_jar() -> dict[str, list[str]]:
    """Return the names of the cases by class."""
    jar = client_test_jars() / f"kafka-clients-integration-tests-{NEWEST_KAFKA_VERSION}-test.jar"
    found: dict[str, list[str]] = _drawing().cases_by_class(jar)
    return found


def _drawing() -> ModuleType:
    """Return the script that reads class files; `tools` is no package."""
    spec = importlib.util.spec_from_file_location("draw_quorum_tests", ROOT / "tools" / "draw_quorum_tests.py")
    if spec is None or spec.loader is None:
        raise ImportError("tools/draw_quorum_tests.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def render(cases: Mapping[str, Sequence[str]], kafka: Outcomes, light: Outcomes) -> str:
    """Return the page."""
    rows = []
    found = {name: [Case(name, case) for case in of_class] for name, of_class in cases.items()}
    reasons: Counter[str] = Counter()
    for name, of_class in found.items():
        excepted = Counter(reason_of(*case) or OPEN for case in of_class if not _passes(light, case))
        reasons += excepted
        counts = (len(of_class), *(sum(_passes(ran, case) for case in of_class) for ran in (kafka, light)))
        texts = "; ".join(f"{count}: {reason}" for reason, count in sorted(excepted.items()))
        rows.append(f"| `{name}` | {' | '.join(map(str, counts))} | {texts or 'none'} |\n")
    every = [case for of_class in found.values() for case in of_class]
    header = HEADER.format(
        version=NEWEST_KAFKA_VERSION,
        classes=len(found),
        cases=len(every),
        kafka=sum(_passes(kafka, case) for case in every),
        light=sum(_passes(light, case) for case in every),
        open=reasons[OPEN],
    )
    return header + "".join(rows)


def _passes(ran: Outcomes, case: Case) -> bool:
    outcome = ran.get(case)
    return outcome is not None and outcome.status is Status.PASSED


def outcomes_of(lines: str) -> Outcomes:
    """Return how the cases ended that `lab.peers.client_tests` printed."""
    printed = [json.loads(line) for line in lines.splitlines()]
    return {
        Case(outcome["class"], outcome["case"]): Outcome(Status(outcome["status"]), outcome["text"])
        for outcome in printed
    }


if __name__ == "__main__":
    runs = [outcomes_of(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]]
    PAGE.write_text(render(cases_of_jar(), *runs), encoding="utf-8")
