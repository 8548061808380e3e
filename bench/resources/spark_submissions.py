"""SparkApplications from `create` to their drivers' pods on a real API server, compared with spark-submit in cluster mode (P10).

Both end when the pod is created: there is no node, and the work in a pod costs the same on both sides. spark-submit runs as its users run
it, one Java process for each application, as many at a time as there are cores; the operator gets all applications at once.
"""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiohttp

from bench.harness import Better, Effort, Row, Side, promised, side_of
from lab.errors import LabError
from lab.peers.kubernetes import KubernetesApi, kubernetes_api
from lab.peers.steward import ROOT, StewardOperator
from lab.processes.folder import lab_folder

NAME = "spark-submissions"
ABOUT = "SparkApplications to their drivers' pods, compared with spark-submit, on a real API server (a few minutes)"

COUNT, QUICK_COUNT = 60, 12
"""Applications at once: as many as promised for a minute."""

SINGLES, QUICK_SINGLES = 10, 3
"""Applications one by one, for the latency."""

PEER_COUNT, QUICK_PEER_COUNT = 6, 2
"""Runs of spark-submit: some ten seconds of a core each."""

ROUNDS = 3
LATENCY_LIMIT_MS, RATE_LIMIT, AT_LEAST = 1_000.0, 60.0, 5.0
"""The promised limits."""

PATIENCE_S = 300.0
SPARK_SUBMIT = "spark-submit in cluster mode, the same API server, as many at once as there are cores"


@dataclass
class Stage:
    """An API server with Steward's kinds and operator, and a namespace for each side."""

    api: KubernetesApi
    folder: Path
    made: int = 0

    @property
    def token(self) -> str:
        """Return the admin's token."""
        found: str = json.loads(self.api.kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
        return found

    def names(self, side: str, count: int) -> list[str]:
        """Return unused names."""
        self.made += count
        return [f"{side}-{number}" for number in range(self.made - count, self.made)]


def measure(effort: Effort) -> Iterator[Row]:
    """Yield latency and rate compared with the peer, and with the promised limits."""
    count, peers = (QUICK_COUNT, QUICK_PEER_COUNT) if effort.quick else (COUNT, PEER_COUNT)
    singles = QUICK_SINGLES if effort.quick else SINGLES
    rounds = 1 if effort.quick else effort.runs(ROUNDS)
    with stage() as at:
        ours_ms: list[float] = []
        theirs_ms: list[float] = []
        our_rate: list[float] = []
        their_rate: list[float] = []
        for _ in range(rounds):
            ours_ms += [asyncio.run(ours(at, 1)) * 1000 for _ in range(singles)]
            our_rate.append(count / asyncio.run(ours(at, count)) * 60)
            theirs_ms.append(submitted(at, 1) * 1000)
            their_rate.append(peers / submitted(at, peers) * 60)
    what = "from one application's creation (or spark-submit's start) to its driver's pod"
    latency = Row(
        f"{NAME}.latency", what, SPARK_SUBMIT, "ms", Better.LOWER, side_of(ours_ms), side_of(theirs_ms), rounds
    )
    yield promised(latency, "P10", AT_LEAST)
    yield limited("latency_limit", what, "ms", Better.LOWER, side_of(ours_ms), LATENCY_LIMIT_MS)
    what = f"drivers' pods a minute, {count} applications created at once"
    rate = Row(
        f"{NAME}.rate", what, SPARK_SUBMIT, "/min", Better.HIGHER, side_of(our_rate), side_of(their_rate), rounds
    )
    yield promised(rate, "P10", AT_LEAST)
    yield limited("rate_limit", what, "/min", Better.HIGHER, side_of(our_rate), RATE_LIMIT)


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """Yield the stage; everything ends with the block."""
    with lab_folder(None) as folder, kubernetes_api(folder / "kubernetes") as api:
        api.install_definitions(ROOT / "crds")
        for side in ("ours", "theirs"):
            api.kubectl("create", "namespace", side, check=True)
        operator = StewardOperator(api.kubeconfig, folder, arguments=["--spark", "--namespace=ours"])
        try:
            operator.start()
            at = Stage(api, folder)
            asyncio.run(ours(at, 1))  # the watch is established, and all modules are imported
            yield at
        finally:
            operator.close()


async def ours(at: Stage, count: int) -> float:
    """Create applications and return the seconds until the last of their drivers' pods is created."""
    context = ssl.create_default_context(cafile=str(at.api.certificate_authority))
    headers = {"Authorization": f"Bearer {at.token}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(at.api.url, headers=headers, connector=connector, timeout=timeout) as session:
        pods = "/api/v1/namespaces/ours/pods"
        async with session.get(f"{pods}?limit=1") as listed:
            version = (await listed.json())["metadata"]["resourceVersion"]
        waiting = asyncio.create_task(_wait(session, f"{pods}?watch=true&resourceVersion={version}", count))
        began_s = time.perf_counter()
        await asyncio.gather(*(_create(session, name) for name in at.names("ours", count)))
        async with asyncio.timeout(PATIENCE_S):
            await waiting
        return time.perf_counter() - began_s


def submitted(at: Stage, count: int) -> float:
    """Run spark-submit for applications and return the seconds until the last of them has created its driver's pod."""
    names = at.names("theirs", count)
    began_s = time.perf_counter()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for done in pool.map(lambda name: _submit(at, name), names):
            if done.returncode:
                raise LabError(f"spark-submit failed: {done.stderr[-2000:]}")
    seconds = time.perf_counter() - began_s
    found = json.loads(at.api.get("/api/v1/namespaces/theirs/pods") or b"{}").get("items", ())
    there = {pod["metadata"]["name"] for pod in found}
    if not set(names) <= there:
        raise LabError(f"spark-submit created no pods for {sorted(set(names) - there)}")
    return seconds


def limited(name: str, what: str, unit: str, better: Better, figure: Side, limit: float) -> Row:
    """Return a row that compares a figure with its promised limit."""
    row = Row(f"{NAME}.{name}", what, "the limit", unit, better, figure, side_of([limit]), 1)
    return promised(row, "P10", 1.0)


def _submit(at: Stage, name: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "spark.kubernetes.namespace": "theirs",
        "spark.kubernetes.container.image": "spark:1",
        "spark.kubernetes.driver.pod.name": name,
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.kubernetes.authenticate.submission.oauthToken": at.token,
        "spark.kubernetes.authenticate.submission.caCertFile": str(at.api.certificate_authority),
        "spark.executor.instances": "2",
    }
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise LabError("Spark is missing: pip install pyspark")
    home = Path(found.origin).parent
    command = [
        str(home / "bin" / "spark-submit"),
        "--master",
        f"k8s://{at.api.url}",
        "--deploy-mode",
        "cluster",
        "--name",
        name,
    ]
    for setting, value in settings.items():
        command += ["--conf", f"{setting}={value}"]
    command.append("local:///opt/jobs/pi.py")
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=at.folder,
        env={**environment, "SPARK_HOME": str(home), "KUBECONFIG": str(at.api.kubeconfig)},
    )


async def _create(session: aiohttp.ClientSession, name: str) -> None:
    body = {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": name},
        "spec": {
            "type": "Python",
            "image": "spark:1",
            "mainApplicationFile": "local:///opt/jobs/pi.py",
            "driver": {},
            "executor": {"instances": 2},
        },
    }
    async with session.post("/apis/steward.dev/v1alpha1/namespaces/ours/sparkapplications", json=body) as answer:
        answer.raise_for_status()


async def _wait(session: aiohttp.ClientSession, path: str, count: int) -> None:
    """Wait until this number of pods was added."""
    async with session.get(path) as answer:
        async for line in answer.content:
            event: dict[str, Any] = json.loads(line)
            count -= event["type"] == "ADDED"
            if not count:
                return
