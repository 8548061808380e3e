"""All tests, as seven runs of pytest side by side: `python -m lab.suites [--quick] [--retry-failed] [pytest's options]`.

Two have the tests on whole clusters and two the operator's on a live Kubernetes API: all four wait half of the time, for sessions to
end and brokers to start. The other three compute: the tests of the core and of the wire, those on Spark and Helm, and the rest. They let the four go
first, so that nothing in these is late for a session, and use what these leave of the processors, so that none is idle.
Options go to all. What names files or folders (`tests/lab`, `tests/x.py::test_y`) is one plain run.

With `--quick`, only tests that need no JVM, no cluster and no Helm run, as two runs side by side, in about a minute on two
processors: without the marks of `lab.prepare.NEEDS`, without tests marked `slow`, and with few examples for each property.

With `--retry-failed`, which CI gives, a failed test that starts processes runs once more after the others (lab.retries).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import failures
from lab.interruption import end_as_by_ctrl_c
from lab.prepare import NEEDS
from lab.retries import retry

ROOT = Path(__file__).resolve().parents[1]

ON_CLUSTERS = "tests/integration"

OF_OPERATOR = "tests/kafka_operator"

OWN_CLUSTERS = ("held_cluster(", "kafka_cluster(", "stage: Stage")
"""In the text of the tests on clusters that need another than the shared one."""

ON_STAGE = "stage: Stage"
"""In the text of those that share a second one."""

OPERATOR_APART = ("kafka_4", "leases", "proposals", "security", "spark", "webhook")
"""In the names of about half of the operator's live tests: they need another Kafka than the others, or none."""

ON_OPERATORS_KAFKA = (
    "tests/controller_core/shell/front/test_front_kafka.py",
    "tests/kafka_zookeeper/test_real_kafka.py",
)
"""Other tests on the cluster that all tests of a run share: they run after the operator's, for which it has started."""

LAST = ("tests/bench", "tests/lab", "tests/steward", "tests/charts", "tests/balance_analytics")
"""What shares Spark and clusters comes last, so that these run no longer than they are needed."""

ON_API = "user: User"
"""In the text of the tests on clusters that need a Kubernetes API and an operator."""

ON_QUORUM = "kraft_cluster"
"""In the text of the tests that need brokers with a quorum."""

CORE = ("tests/controller_core", "tests/kafka_wire", "tests/kafka_zookeeper")
"""Half of what is left: a run of its own, so that two of them share the processors in the end."""

OWN_APART = ("old_brokers", "secured")
"""In the names of tests on clusters of their own that run after the operator's, which end before the others."""

WITH_API = ("tests/charts", "tests/steward")
"""Where other tests meet a real API server: they share the operator's, which ends before the others."""

LIVE = ("pytest.mark.kubernetes", "pytest.mark.kafka")
"""In the text of the operator's tests that meet a real API server or real brokers."""

LETS_OTHERS_GO_FIRST = ("nice", "-n", "5")
"""A third of the share of a run of normal priority, and all of a processor that no such run wants."""

SHOWN = ("--durations=15", "--durations-min=5")
"""Where the time goes, so that it is seen when it grows."""

PLAIN_TRACEBACKS = {"PYTHONNODEBUGRANGES": "1"}
"""Without carets below their lines, for which Python parses a line: while it parses a file for a test's report, and the garbage
collector has a traceback of its own to tell, Python 3.11 ends that in a SystemError, and pytest ends all of the run."""

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Not passed on: without bytecode, each of a hundred processes of Steward that tests start compiles its modules, which is half of its
start, and each run of pytest rewrites the assertions of all its tests."""

RETRY_FAILED = "--retry-failed"

QUICK = "--quick"

QUICK_MARKS = ("-m", f"not ({' or '.join([*NEEDS, 'slow'])})")

QUICK_ENVIRONMENT = {"HYPOTHESIS_PROFILE": "brief", "KAFKA_WIRE_EFFORT": "0.1"}

QUICK_HALF = (
    "tests/balance_analytics",
    "tests/controller_core/decisions",
    "tests/controller_core/rules",
    "tests/controller_core/views",
    "tests/controller_core/zookeeper_mode",
    "tests/kafka_operator",
    "tests/kafka_zookeeper",
    "tests/steward",
)
"""About half of what `--quick` computes: one run; the other has the rest."""

HELP = f"""usage: make test ARGS="[{QUICK}] [{RETRY_FAILED}] [pytest's options] [files, folders or tests]"

  {QUICK}           only tests that need no JVM, no cluster and no Helm: about a minute
  {RETRY_FAILED}    run a failed test that starts processes once more, after the others
  -k reassignment   tests whose names contain a word; pytest --help lists pytest's own options
  tests/kafka_wire/test_schema.py::test_names_are_converted_to_snake_case
                    one test, as one plain run of pytest
"""

END_TIMEOUT_S = 60
"""Several times what a run needs to end its peers when it is told to end."""


@dataclass(frozen=True, slots=True)
class Part:
    """One run of pytest: what it is asked for, and by which command it is started."""

    name: str
    arguments: Sequence[str]
    by: Sequence[str] = ()


def parts(root: Path = ROOT) -> tuple[Part, ...]:
    """Return the runs, as they begin; together they take each file of tests once."""
    of_operator = _texts(root, OF_OPERATOR)
    live = _marked(of_operator, LIVE)
    with_api = [path for folder in WITH_API for path in _marked(_texts(root, folder), LIVE)]
    apart = [path for path in live if any(word in path for word in OPERATOR_APART)]
    on_clusters = _texts(root, ON_CLUSTERS)
    all_own = _marked(on_clusters, OWN_CLUSTERS)
    shared = [path for path in on_clusters if path not in all_own]
    own_apart = [path for path in all_own if any(word in path for word in OWN_APART)]
    own = [path for path in all_own if path not in own_apart]
    # What only some tests need is started by the first of them and runs to the end: these come last.
    own.sort(key=lambda path: ON_STAGE in on_clusters[path])
    shared.sort(key=lambda path: ON_API in on_clusters[path])
    apart.sort(key=lambda path: ON_QUORUM in of_operator[path])
    with_operator = [*with_api, *ON_OPERATORS_KAFKA]
    elsewhere = [f"--ignore={path}" for path in with_operator]
    ignored = [f"--ignore={path}" for path in (ON_CLUSTERS, *CORE, *live, *LAST)]
    return (
        Part("own", own),
        Part("shared", shared),
        Part("operator", [*(path for path in live if path not in apart), *with_operator]),
        Part("apart", [*apart, *own_apart]),
        Part("core", [*CORE, *elsewhere], LETS_OTHERS_GO_FIRST),
        Part("rest", ["tests", *ignored, *elsewhere], LETS_OTHERS_GO_FIRST),
        Part("last", [*LAST, *elsewhere], LETS_OTHERS_GO_FIRST),
    )


def live_parts(root: Path = ROOT) -> tuple[Part, ...]:
    """Return the runs of the tests on whole clusters and on a live Kubernetes API, which are those that let no others go first."""
    return tuple(part for part in parts(root) if not part.by)


def _marked(texts: Mapping[str, str], marks: Sequence[str]) -> list[str]:
    """Return the paths of the files whose text has one of the marks."""
    return [path for path, text in texts.items() if any(mark in text for mark in marks)]


def _texts(root: Path, folder: str) -> dict[str, str]:
    """Read the files of tests in a folder, by path and in order."""
    found = sorted((root / folder).glob("test_*.py"))
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}


def quick_parts() -> tuple[Part, ...]:
    """Return the runs of `--quick`; none has the tests on whole clusters."""
    ignored = [f"--ignore={path}" for path in (ON_CLUSTERS, *QUICK_HALF)]
    return (Part("half", QUICK_HALF), Part("rest", ["tests", *ignored]))


def names_tests(arguments: Sequence[str]) -> bool:
    """Whether some of pytest's arguments are tests' names, so that the choice is made already."""
    return any(one.startswith("tests") and (ROOT / one.partition("::")[0]).exists() for one in arguments)


def verdict(statuses: Sequence[int]) -> int:
    """Return the exit status of runs together: the worst of those that chose any test; none chosen in all is what pytest says of it."""
    chosen = [status for status in statuses if status != pytest.ExitCode.NO_TESTS_COLLECTED]
    failed = [status for status in chosen if status != pytest.ExitCode.OK]
    if failed:
        return failed[0]
    return pytest.ExitCode.OK if chosen else pytest.ExitCode.NO_TESTS_COLLECTED


def main(arguments: list[str]) -> int:
    """Run the tests and return the exit status."""
    if {"-h", "--help"} & set(arguments):
        _show(HELP)
        return 0
    quick = QUICK in arguments
    chosen = [one for one in arguments if one not in {RETRY_FAILED, QUICK}]
    if quick:
        chosen += QUICK_MARKS  # the last -m counts
        os.environ.update(QUICK_ENVIRONMENT)
    if names_tests(chosen):
        return _start(chosen).wait()
    end_as_by_ctrl_c()
    with tempfile.TemporaryDirectory(prefix="steward-failures-") as folder:
        statuses = run_parts(quick_parts() if quick else parts(), chosen, Path(folder))
        status = verdict(list(statuses.values()))
        if RETRY_FAILED in arguments and status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            passed = retry(statuses, failures.read_failures, lambda nodeid: _start([nodeid]).wait(), _show)
            return pytest.ExitCode.OK if passed else status
        return status


def run_parts(chosen: Sequence[Part], arguments: Sequence[str], folder: Path) -> dict[Path, int]:
    """Run parts side by side; return the exit status of each by the file that records its failures."""
    runs: list[subprocess.Popen[str]] = []

    def carry_out(part: Part) -> tuple[Path, int]:
        recorded = folder / part.name
        record = ["-p", failures.__name__, failures.OPTION, str(recorded)]
        run = _start([*SHOWN, *record, *part.arguments, *arguments], by=part.by, piped=True)
        runs.append(run)
        _tell(part.name, run)
        return recorded, run.wait()

    pool = ThreadPoolExecutor(len(chosen))
    try:
        return dict(done.result() for done in [pool.submit(carry_out, part) for part in chosen])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for run in runs:
            _end(run)


def _show(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # the report of the run is its output


def _start(arguments: Sequence[str], *, by: Sequence[str] = (), piped: bool = False) -> subprocess.Popen[str]:
    command = [*by, sys.executable, "-m", "pytest", *arguments]
    output = subprocess.PIPE if piped else None
    environment = {**os.environ, **PLAIN_TRACEBACKS}
    environment.pop(NO_BYTECODE, None)
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, text=True, errors="replace")


def _tell(name: str, run: subprocess.Popen[str]) -> None:
    """Pass a run's lines on, each with its part's name in front."""
    assert run.stdout is not None, name
    for line in run.stdout:
        sys.stdout.write(f"{name:>8} | {line}")
        sys.stdout.flush()


def _end(run: subprocess.Popen[str]) -> None:
    """End a run that goes on, by the signal on which pytest ends its fixtures."""
    if run.poll() is not None:
        return
    run.send_signal(signal.SIGINT)
    try:
        run.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        run.kill()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
