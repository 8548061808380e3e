"""Set-up of the lab before its first use: download, unpack or build what it runs, and report the time of each step.

    python -m lab.setup.prepare             everything for the tests; what this machine lacks is reported with the command that installs it
    python -m lab.setup.prepare --strict    everything for the benchmarks; what this machine lacks is a failure
    python3 -m lab.setup.prepare --demo     what the demo needs, with its Python packages; what this machine lacks is a failure

The lab would do the same at first use, without a report. The system's Python runs `--demo` before any package is installed, so this
module imports at its top only what needs none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.downloads.helm import helm
from lab.downloads.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION, OLDEST_KRAFT_VERSION, java_with_compiler, kafka_jars
from lab.downloads.kube_binaries import kube_binaries, kube_source
from lab.errors import LabError, Missing
from lab.setup.progress import FailedStep, Step, run_steps
from lab.setup.python_packages import DEMO, install_steps

LAST_LINES = 3
"""Lines of a failed download that are reported; Maven and Go name the cause there."""


@dataclass(frozen=True, slots=True)
class Need:
    """A requirement of tests and the demo: `ready()` fulfils it or raises `LabError`."""

    title: str
    ready: Callable[[], object]


def _kafka() -> None:
    java_with_compiler()
    kafka_jars()


def _judges() -> None:
    from lab.peers.client_tests import client_test_jars  # noqa: PLC0415 - as well
    from lab.setup.archiving import make_archives  # noqa: PLC0415 - needs packages, which --demo installs first

    _kafka()
    kafka_jars(NEWEST_KAFKA_VERSION)
    kafka_jars(OLDEST_KRAFT_VERSION)
    make_archives()
    client_test_jars()


KAFKA = Need(f"Kafka {KAFKA_VERSION} with ZooKeeper: jars, downloaded by Maven", _kafka)
JUDGES = Need(
    f"Kafka {NEWEST_KAFKA_VERSION} and {OLDEST_KRAFT_VERSION}: jars, also of client tests; class archives, for faster starts",
    _judges,
)
KUBERNETES = Need("Kubernetes API server, etcd and kubectl", kube_binaries)
HELM = Need("helm (built from its Go module where it is not found: minutes)", helm)

NEEDS: Mapping[str, Need] = {
    "zookeeper": KAFKA,
    "kafka": JUDGES,
    "java": JUDGES,
    "kubernetes": KUBERNETES,
    "helm": HELM,
}
"""Marker of a test -> what it needs. Tests with brokers run both versions."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The reason why something cannot run on this machine, and the command or step that changes it."""

    reason: str
    remedy: str


def lacking(need: Need) -> LeftOut | None:
    """Make `need` ready and return None, or return what this machine lacks for it."""
    try:
        need.ready()
    except LabError as error:
        return _left_out(error)
    return None


def _left_out(error: LabError) -> LeftOut:
    if isinstance(error, Missing):
        return LeftOut(f"{error.what} is missing", error.install)
    return LeftOut(
        "; ".join(str(error).splitlines()[:LAST_LINES]), "run again where the package registries can be reached"
    )


def _step(need: Need) -> Step:
    title = f"{need.title}: {kube_source()}" if need is KUBERNETES else need.title
    return Step(title, need.ready)


def _prepare(arguments: Sequence[str]) -> list[FailedStep]:
    kafka, judges, kubernetes = map(_step, (KAFKA, JUDGES, KUBERNETES))
    if "--demo" in arguments:
        return run_steps(install_steps(DEMO), (kafka,), (kubernetes,))
    if "--strict" in arguments:  # Benchmarks install no chart.
        return run_steps((kafka, judges), (kubernetes,))
    return run_steps((kafka, judges), (kubernetes,), (_step(HELM),))


def main(arguments: Sequence[str]) -> int:
    """Prepare everything and return the exit status."""
    began = time.monotonic()
    failures = _prepare(arguments)
    for failed in failures:
        left_out = _left_out(failed.error)
        sys.stdout.write(f"not available: {failed.step.title}: {left_out.reason}; to change that: {left_out.remedy}\n")
    sys.stdout.write(f"set-up took {time.monotonic() - began:.1f} s\n")
    return 1 if failures and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
