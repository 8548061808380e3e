"""Fetch, unpack or build everything that the lab runs, ahead of its first use: `python -m lab.prepare [--strict]`.

Tests and the demo would do the same by themselves; done first, the minutes that it may take stand apart from what follows, and a
person sees why. What this machine cannot do is told with the command that changes it; with `--strict` that is a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.archiving import make_archives
from lab.helm import helm
from lab.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION, java_with_compiler, kafka_jars
from lab.kube_binaries import kube_binaries
from lab.missing import LabError, Missing

LAST_LINES = 3
"""Of a fetch that failed: where Maven and Go say why."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that tests and the demo need of this machine: `ready()` makes it so, or raises `LabError`."""

    title: str
    ready: Callable[[], object]


def _kafka() -> None:
    java_with_compiler()
    kafka_jars()


def _judges() -> None:
    _kafka()
    kafka_jars(NEWEST_KAFKA_VERSION)
    make_archives()


KAFKA = Need(f"Java and the jars of Kafka {KAFKA_VERSION}", _kafka)
JUDGES = Need(f"the jars of Kafka {NEWEST_KAFKA_VERSION}, and archives of both", _judges)
KUBERNETES = Need(
    "the Kubernetes API server, kubectl and etcd (a build, where it is needed, takes minutes)", kube_binaries
)
HELM = Need("helm (a build, where it is needed, takes minutes)", helm)

NEEDS: Mapping[str, Need] = {
    "zookeeper": KAFKA,
    "kafka": JUDGES,
    "java": JUDGES,
    "kubernetes": KUBERNETES,
    "helm": HELM,
}
"""The mark of a test -> what it needs; brokers of both versions run."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why something cannot run here, and the command or step that changes it."""

    reason: str
    remedy: str


def lacking(need: Need) -> LeftOut | None:
    """Make `need` ready and return None, or return what this machine lacks for it."""
    try:
        need.ready()
    except Missing as missing:
        return LeftOut(f"{missing.what} is missing", missing.install)
    except LabError as error:
        return LeftOut(
            "; ".join(str(error).splitlines()[:LAST_LINES]), "run again where the package registries can be reached"
        )
    return None


def main(arguments: list[str]) -> int:
    """Prepare all and return the exit status. What asks strictly (demo, benchmarks) installs no chart, so that it waits for no helm."""
    status = 0
    needs = (KAFKA, JUDGES, KUBERNETES)
    for need in needs if "--strict" in arguments else (*needs, HELM):
        sys.stdout.write(f"preparing {need.title}\n")
        sys.stdout.flush()
        left_out = lacking(need)
        if left_out is not None:
            sys.stdout.write(f"  not here: {left_out.reason}; to change that: {left_out.remedy}\n")
            status = 1 if "--strict" in arguments else 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
