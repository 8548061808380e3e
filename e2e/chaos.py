"""Rounds of random faults under load: `python -m e2e.chaos [--seed N] [--rounds N] [--keep]`.

A round draws its faults from the seed, causes them under the load of a witness, ends them, and allows 30 s until every replica is in sync
again. The witness reports violations: a lost or duplicate record, one out of order, one at another offset than the acknowledged one, one
that a reader skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from pathlib import Path

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.faults import Faults
from e2e.faults_plan import RESTARTING, Fault, Kind, Target, draw_round
from e2e.kind.programs import clients as programs
from e2e.kube import Kube, Resource
from e2e.release import Release
from e2e.resources import TOPICS, topic
from e2e.session import kubernetes
from lab.errors import LabError
from lab.processes.waiting import wait_until

TOPIC = "chaos"

ROUNDS = 20

CONVERGED_WITHIN_S = 30.0
"""After the last fault of a round has ended."""

RESTART_S = 40.0
"""Additional time for a process that ended, once its container runs: the expiry of its former session, and its start."""

BACK_OFF_S = 330.0
"""The kubelet delays the restart of a container that ends repeatedly by up to five minutes; such a fault ends with the restart."""


class Chaos:
    """One installation and its faults."""

    def __init__(self, release: Release, clients: KafkaClients, faults: Faults, *, seed: int) -> None:
        self.seed = seed
        self._release = release
        self._clients = clients
        self._faults = faults

    def prepare(self) -> None:
        """Declare the topic of the load."""
        self._release.kube.apply(topic(TOPIC))
        self._release.kube.wait_condition(TOPICS, TOPIC, timeout_s=60)
        self._clients.wait_in_sync(TOPIC, timeout_s=60)

    def round(self, number: int) -> None:
        """Run one round; raise `LabError` with the seed, the faults and the violation, if any."""
        faults = draw_round(self.seed, number)
        title = f"seed {self.seed}, round {number}: {', '.join(map(str, faults))}"
        print(title, flush=True)
        witness = self._clients.witness(TOPIC, min_isr=2)
        try:
            for fault in faults:
                time.sleep(fault.after_s)
                self._strike(fault)
            self._wait_running()
            restarting = any(fault.kind in RESTARTING for fault in faults)
            took = self._clients.wait_in_sync(TOPIC, timeout_s=CONVERGED_WITHIN_S + RESTART_S * restarting)
            print(f"every replica in sync {took:.1f} s after the faults", flush=True)
        except LabError as error:
            raise LabError(f"{title}\n{error}") from error
        finally:
            report = witness.stop()
        if report.wrong():
            raise LabError(f"{title}\n{report.wrong()}")
        self._release.wait_ready()

    def _strike(self, fault: Fault) -> None:
        if fault.target is Target.API_SERVER:
            self._restart_api_server()
            return
        pod = self._victim(fault)
        if fault.kind in {Kind.KILL, Kind.PAUSE}:
            self._wait_process(pod)
        if fault.kind is Kind.KILL:
            self._faults.kill(pod)
            return
        begin, end = {
            Kind.PAUSE: (self._faults.pause, self._faults.resume),
            Kind.CUT: (self._faults.cut_off, self._faults.reconnect),
            Kind.FILL: (self._faults.fill_disk, self._faults.free_disk),
        }[fault.kind]
        begin(pod)
        try:
            time.sleep(fault.length_s)
        finally:
            end(pod)

    def _wait_running(self) -> None:
        """Wait until the kubelet has restarted all ended containers."""
        for workload in chart.WORKLOADS:
            for pod in self._release.pods(workload):
                self._wait_process(pod)

    def _wait_process(self, pod: Resource) -> None:
        wait_until(
            lambda: self._faults.is_running(pod),
            timeout_s=BACK_OFF_S,
            what=f"{pod['metadata']['name']} running",
            interval_s=0.5,
        )

    def _restart_api_server(self) -> None:
        kube = self._release.kube
        pod = kube.within("kube-system").items("pods", "component=kube-apiserver")[0]
        with contextlib.suppress(LabError):  # the fault ends the process through which it reaches the pod
            self._faults.kill(pod)
        wait_until(
            lambda: kube.attempt("get", "--raw=/readyz").returncode == 0,
            timeout_s=BACK_OFF_S,
            what="the API server ready again",
            interval_s=0.5,
        )

    def _victim(self, fault: Fault) -> Resource:
        if fault.target is Target.CONTROLLER and fault.number % 2 == 0:
            active = self._clients.describe()["controller"]
            if active >= chart.FIRST_CONTROLLER_ID:
                return self._release.controller(active)
        workload = {
            Target.BROKER: chart.BROKERS,
            Target.CONTROLLER: chart.CONTROLLER,
            Target.ZOOKEEPER: chart.ZOOKEEPER,
            Target.OPERATOR: chart.OPERATOR,
        }[fault.target]
        pods = self._release.pods(workload)
        return pods[fault.number % len(pods)]


def main(arguments: list[str]) -> int:
    """Run the rounds and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.chaos", description="Rounds of random faults under load.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--first", type=int, default=1, help="first round")
    parser.add_argument("--keep", action="store_true", help="keep the cluster for the next run")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    try:
        with kubernetes(keep=options.keep) as kubeconfig:
            chaos = _installed(kubeconfig, options.seed)
            for number in range(options.first, options.first + options.rounds):
                chaos.round(number)
    except LabError as error:
        print(f"{error}\nto repeat it: make chaos ARGS='--seed {options.seed}'", file=sys.stderr)
        return 1
    print(f"{options.rounds} rounds without a lost, duplicate, displaced or skipped record")
    return 0


def _installed(kubeconfig: Path, seed: int) -> Chaos:
    release = Release(Kube(programs().kubectl, kubeconfig, chart.NAMESPACE), programs().helm)
    release.install()
    clients, faults = KafkaClients(release.kube), Faults(release.kube)
    clients.install()
    faults.install()
    chaos = Chaos(release, clients, faults, seed=seed)
    chaos.prepare()
    return chaos


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
