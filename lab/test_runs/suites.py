"""All tests, in eight runs of pytest side by side: `python -m lab.test_runs.suites [--quick] [--retry-failed] [pytest's options]`.

- `own` and `shared` test on whole clusters; `operator` and `apart` test the operator on a live Kubernetes API, and `apart` also quorums of
  Java voters. They wait about half of the time: for brokers to start, and for sessions to expire.
- `spark` has the tests of the analytics that need a Spark session or brokers. It computes nearly all of its time with one thread. It is a
  session of its own, so that it gets as much of the processors as one broker of the other runs, and does not end alone (`Part.is_session`).
- `core`, `broker` and `rest` have all other tests. They have low priority, so that they use what the five leave of the processors. With two
  of them, the longer one computed alone for minutes at the end.

Options apply to every run. Arguments that are files, folders or tests (`tests/lab`, `tests/x.py::test_y`) start one plain run instead.

`--quick` runs only tests that need no JVM, no cluster and no Helm, in three runs side by side: a minute on two processors. It leaves
out tests with one of the marks in `lab.setup.prepare.NEEDS` or with the mark `slow`, and runs few examples of each property.

`--retry-failed`, which CI sets, repeats each failed test that starts processes once, after all runs have ended (lab.test_runs.retries).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.processes.interruption import end_as_by_ctrl_c
from lab.processes.spawn import NO_BYTECODE
from lab.setup.prepare import NEEDS
from lab.test_runs import failures
from lab.test_runs.retries import retry

ROOT = Path(__file__).resolve().parents[2]

ON_CLUSTERS = "tests/integration"

OF_OPERATORS = ("tests/kafka_operator", "tests/reconciler", "tests/spark_operator")

ANALYTICS = "tests/balance_analytics"

ON_KAFKA = "pytest.mark.kafka"

ON_JVM = ("pytest.mark.java", ON_KAFKA)
"""One of these is in the text of each test file of the analytics that needs Spark or brokers."""

OWN_CLUSTERS = ("held_cluster(", "kafka_cluster(", "kraft_cluster(", "with quorum(", "stage: Stage")
"""One of these is in the text of each test on clusters that does not use the shared cluster."""

ON_STAGE = "stage: Stage"
"""Is in the text of the tests that share a second cluster."""

OPERATOR_APART = ("kafka_4", "leases", "proposals", "security", "spark", "webhook")
"""Parts of paths: about half of the operators' live tests, which need another Kafka than the other half, or none."""

ON_OPERATORS_KAFKA = (
    "tests/controller_core/shell/front/test_front_kafka.py",
    "tests/kafka_zookeeper/test_real_kafka.py",
)
"""Tests that use the Kafka cluster of the run `operator`: they run after the operator's tests, which have started it."""

ON_API = "user: User"
"""Is in the text of the tests on clusters that need a Kubernetes API and an operator."""

ON_QUORUM = "kraft_cluster"
"""Is in the text of the tests that need brokers with a quorum."""

JAVA_VOTERS = (
    "tests/kafka_log/test_java_controller.py",
    "tests/kafka_metadata/test_java_controller.py",
    "tests/lab/peers/test_quorum.py",
)
"""Tests that start Java voters. At low priority the voters would lose their leader while other runs compute."""

CORE = ("tests/controller_core", "tests/kafka_wire", "tests/kafka_zookeeper")
"""About a third of the tests that need neither Spark nor a cluster."""

BROKER = ("tests/kafka_log", "tests/kafka_metadata", "tests/kafka_node", "tests/light_broker", "tests/sim")
"""About a third of these tests."""

OWN_APART = ("mixed_cluster", "mutation_quotas", "old_brokers", "quorum_faults", "secured")
"""Parts of file names: tests on clusters of their own that are in `apart`, since `own` and `shared` have the most to do."""

OWN_WITH_OPERATORS = ("kraft_alone", "light_cluster")
"""Parts of file names: such tests that are in `operator`."""

WITH_API = ("tests/charts", "tests/steward")
"""Folders with further tests that need a Kubernetes API: they share that of the run `operator`."""

LIVE = ("pytest.mark.kubernetes", ON_KAFKA)
"""One of these is in the text of each test file that needs a Kubernetes API or brokers."""

LOW_PRIORITY = ("nice", "-n", "5")
"""A third of the processor time of a run of normal priority while both compute, and all that such runs leave."""

DURATIONS = ("--durations=15", "--durations-min=5")
"""Each run prints its slowest tests, so that a test that becomes slow is noticed."""

PLAIN_TRACEBACKS = {"PYTHONNODEBUGRANGES": "1"}
"""Tracebacks without carets, for which Python would parse source lines. If the garbage collector formats a traceback with carets while
Python 3.11 parses a file, the parser raises SystemError (CPython issue 106905), which ends the whole run of pytest."""

RETRY_FAILED = "--retry-failed"

QUICK = "--quick"

QUICK_MARKS = ("-m", f"not ({' or '.join([*NEEDS, 'slow'])})")

QUICK_ENVIRONMENT = {"HYPOTHESIS_PROFILE": "brief", "KAFKA_WIRE_EFFORT": "0.1"}

QUICK_OPERATORS = (
    "tests/balance_analytics",
    "tests/kafka_log",
    "tests/kafka_operator",
    "tests/kafka_zookeeper",
    "tests/reconciler",
    "tests/spark_operator",
    "tests/steward",
)
QUICK_BROKER = (
    "tests/controller_core/decisions",
    "tests/controller_core/rules",
    "tests/kafka_metadata",
    "tests/kafka_node",
    "tests/kafka_wire",
    "tests/light_broker",
    "tests/sim",
)
"""Each is about a third of the work of `--quick`, and one of its three runs: a test that waits leaves a processor to the others."""

HELP = f"""usage: make test ARGS="[{QUICK}] [{RETRY_FAILED}] [pytest's options] [files, folders or tests]"

  {QUICK}           only tests that need no JVM, no cluster and no Helm: a minute on two processors
  {RETRY_FAILED}    run a failed test that starts processes once more, after the others
  -k reassignment   tests whose names contain a word; pytest --help lists pytest's own options
  tests/kafka_wire/test_schema.py::test_names_are_converted_to_snake_case
                    one test, as one plain run of pytest
"""

END_TIMEOUT_S = 60
"""Several times what a run needs to stop the processes that it has started."""


@dataclass(frozen=True, slots=True)
class Part:
    """One run of pytest: its arguments, and a command that runs it (`LOW_PRIORITY`); `live` if it needs clusters or a Kubernetes API.

    With `is_session` it is a session of its own. Linux shares the processors first among sessions (autogroup in sched(7)), where each
    process that the lab starts is one, and only then among the processes of a session: all runs together would get as much as one broker.
    """

    name: str
    arguments: Sequence[str]
    prefix: Sequence[str] = ()
    live: bool = False
    is_session: bool = False


def parts(root: Path = ROOT) -> tuple[Part, ...]:
    """Return the runs in the order in which they start; each test file is in one of them."""
    of_operators = {path: text for folder in OF_OPERATORS for path, text in _texts(root, folder).items()}
    live = _marked(of_operators, LIVE)
    with_api = [path for folder in WITH_API for path in _marked(_texts(root, folder), LIVE)]
    apart = _named(live, OPERATOR_APART)
    on_clusters = _texts(root, ON_CLUSTERS)
    own_apart = _named(on_clusters, OWN_APART)
    own_with_operators = _named(on_clusters, OWN_WITH_OPERATORS)
    elsewhere = {*own_apart, *own_with_operators}
    here = {path: text for path, text in on_clusters.items() if path not in elsewhere}
    own = _marked(here, OWN_CLUSTERS)
    shared = [path for path in here if path not in own]
    # A fixture that only some tests need starts with the first of them and runs to the end: these tests come last.
    own.sort(key=lambda path: ON_STAGE in on_clusters[path])
    shared.sort(key=lambda path: ON_API in on_clusters[path])
    apart.sort(key=lambda path: ON_QUORUM in of_operators[path])
    of_analytics = _texts(root, ANALYTICS)
    spark = _marked(of_analytics, ON_JVM)
    spark.sort(key=lambda path: ON_KAFKA in of_analytics[path])
    with_operator = [*with_api, *ON_OPERATORS_KAFKA]
    not_alone = [f"--ignore={path}" for path in (*with_operator, *JAVA_VOTERS)]
    ignored = [f"--ignore={path}" for path in (ON_CLUSTERS, *spark, *CORE, *BROKER, *live)]
    return (
        Part("own", own, live=True),
        Part("shared", shared, live=True),
        Part(
            "operator", [*(path for path in live if path not in apart), *with_operator, *own_with_operators], live=True
        ),
        Part("apart", [*apart, *own_apart, *JAVA_VOTERS], live=True),
        Part("spark", spark, is_session=True),
        Part("core", [*CORE, *not_alone], LOW_PRIORITY),
        Part("broker", [*BROKER, *not_alone], LOW_PRIORITY),
        Part("rest", ["tests", *ignored, *not_alone], LOW_PRIORITY),
    )


def live_parts(root: Path = ROOT) -> tuple[Part, ...]:
    """Return the runs of the tests on whole clusters and on a live Kubernetes API."""
    return tuple(part for part in parts(root) if part.live)


def _marked(texts: Mapping[str, str], marks: Sequence[str]) -> list[str]:
    """Return the paths of the files whose text has one of the marks."""
    return [path for path, text in texts.items() if any(mark in text for mark in marks)]


def _named(paths: Iterable[str], words: Sequence[str]) -> list[str]:
    """Return the paths that contain one of the words."""
    return [path for path in paths if any(word in path for word in words)]


def _texts(root: Path, folder: str) -> dict[str, str]:
    """Read the files of tests in a folder, by path and in order."""
    found = sorted((root / folder).rglob("test_*.py"))
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}


def quick_parts() -> tuple[Part, ...]:
    """Return the runs of `--quick`; none has the tests on whole clusters."""
    ignored = [f"--ignore={path}" for path in (ON_CLUSTERS, *QUICK_OPERATORS, *QUICK_BROKER)]
    return (Part("operator", QUICK_OPERATORS), Part("broker", QUICK_BROKER), Part("rest", ["tests", *ignored]))


def names_tests(arguments: Sequence[str]) -> bool:
    """Whether some of pytest's arguments name files, folders or tests."""
    return any(argument.startswith("tests") and (ROOT / argument.partition("::")[0]).exists() for argument in arguments)


def verdict(statuses: Sequence[int]) -> int:
    """Return one exit status for all runs: the first failure, else OK; `NO_TESTS_COLLECTED` if no run has chosen a test."""
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
    chosen = [argument for argument in arguments if argument not in {RETRY_FAILED, QUICK}]
    if quick:
        chosen += QUICK_MARKS  # the last -m counts
        os.environ.update(QUICK_ENVIRONMENT)
    if names_tests(chosen):
        return start_pytest(chosen).wait()
    end_as_by_ctrl_c()
    with tempfile.TemporaryDirectory(prefix="steward-failures-") as folder:
        statuses = run_parts(quick_parts() if quick else parts(), chosen, Path(folder))
        status = verdict(list(statuses.values()))
        if RETRY_FAILED in arguments and status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            passed = retry(statuses, failures.read_failures, lambda nodeid: start_pytest([nodeid]).wait(), _show)
            return pytest.ExitCode.OK if passed else status
        return status


def run_parts(chosen: Sequence[Part], arguments: Sequence[str], folder: Path) -> dict[Path, int]:
    """Run parts side by side; return the exit status of each by the file that records its failures."""
    runs: list[subprocess.Popen[str]] = []

    def carry_out(part: Part) -> tuple[Path, int]:
        recorded = folder / part.name
        record = ["-p", failures.__name__, failures.OPTION, str(recorded)]
        command = [*DURATIONS, *record, *part.arguments, *arguments]
        run = start_pytest(command, prefix=part.prefix, piped=True, is_session=part.is_session)
        runs.append(run)
        _pass_on(part.name, run)
        status, used_s = wait_for(run)
        _show(f"{part.name:>8} | used {used_s:.0f} s of a processor, with brokers and other processes that it started")
        return recorded, status

    pool = ThreadPoolExecutor(len(chosen))
    try:
        return dict(done.result() for done in [pool.submit(carry_out, part) for part in chosen])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for run in runs:
            _end(run)


def _show(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # the report of the run is its output


def start_pytest(
    arguments: Sequence[str], *, prefix: Sequence[str] = (), piped: bool = False, is_session: bool = False
) -> subprocess.Popen[str]:
    """Start one run of pytest; with `piped` the caller reads its standard output."""
    command = [*prefix, sys.executable, "-m", "pytest", *arguments]
    output = subprocess.PIPE if piped else None
    environment = {**os.environ, **PLAIN_TRACEBACKS}
    environment.pop(NO_BYTECODE, None)  # each run of pytest would rewrite the assertions of all its tests
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=output, text=True, errors="replace", start_new_session=is_session
    )


def _pass_on(name: str, run: subprocess.Popen[str]) -> None:
    """Print a run's lines, each with its part's name in front."""
    assert run.stdout is not None, name
    for line in run.stdout:
        sys.stdout.write(f"{name:>8} | {line}")
        sys.stdout.flush()


def wait_for(run: subprocess.Popen[str]) -> tuple[int, float]:
    """Wait for a run; return its exit status, and the processor seconds of it and of all processes that it has waited for."""
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    return run.returncode, used.ru_utime + used.ru_stime


def _end(run: subprocess.Popen[str]) -> None:
    """End a run that still goes on, with the signal after which pytest closes its fixtures."""
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
