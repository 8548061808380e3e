"""Remove the operator's finalizer from all custom resources before it is uninstalled: no other process removes it.

    python3 release_resources.py NAMESPACE NAME SERVED_NAMESPACE,SERVED_NAMESPACE OPERATOR_LABELS [BROKER_LABELS]

NAME is the prefix of the names of the chart's objects, and labels are LABEL=VALUE,LABEL=VALUE. The operator is stopped first, since it
would add the finalizer again. Then the finalizer is removed from every Cluster, Topic and Reassignment of the namespaces that it serves
(`*`: of all). The resources stay, and so do topics and their data in Kafka. If the release has brokers, they are stopped next, while
controller and ZooKeeper still answer: helm deletes everything at once, and a broker that has lost ZooKeeper during its shutdown waits for it
until it is killed. The pod of `helm test`, which helm does not delete, is deleted too. The program can run again at any time, and uses only the
standard library.
"""

import sys
import time
import urllib.error
from collections.abc import Iterator
from typing import Any

from kubernetes_api import CONFLICT, NOT_FOUND, Api, own_api

FINALIZER = "steward.dev/operator"
RESOURCES = "/apis/steward.dev/v1alpha1"
KINDS = ("reassignments", "topics", "clusters")

PAGE = 500
"""Resources in one list: some hundred kilobytes."""

ATTEMPTS = 5
"""Attempts of one patch while other clients change the same resource."""

STOP_TIMEOUT_S = 60.0
"""Twice the operator's grace period, several times what brokers take; the hook has three minutes for both."""


def stop(api: Api, namespace: str, workload: str, labels: str) -> None:
    """Scale a workload (`deployments/NAME`) to 0 and wait until its pods are gone; TimeoutError if one remains."""
    try:
        api.patch(f"/apis/apps/v1/namespaces/{namespace}/{workload}/scale", {"spec": {"replicas": 0}})
    except urllib.error.HTTPError as error:
        if error.code != NOT_FOUND:
            raise
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={labels}")["items"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"a pod of {workload} has not ended after {STOP_TIMEOUT_S:.0f} s")
        time.sleep(0.5)


def release_all(api: Api, namespaces: list[str]) -> int:
    """Remove the finalizer from every resource that has it and return their number."""
    released = 0
    for kind in KINDS:
        for namespace in namespaces:
            place = RESOURCES if namespace == "*" else f"{RESOURCES}/namespaces/{namespace}"
            for found in _listed(api, f"{place}/{kind}"):
                released += _release(api, kind, found)
    return released


def _listed(api: Api, path: str) -> Iterator[dict[str, Any]]:
    following = ""
    while True:
        try:
            page = api.get(f"{path}?limit={PAGE}{following}")
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:  # the CRD has been deleted, and its resources with it
                return
            raise
        yield from page["items"]
        if not page["metadata"].get("continue"):
            return
        following = f"&continue={page['metadata']['continue']}"


def _release(api: Api, kind: str, found: dict[str, Any]) -> int:
    path = f"{RESOURCES}/namespaces/{found['metadata']['namespace']}/{kind}/{found['metadata']['name']}"
    for _ in range(ATTEMPTS):
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers", [])
        if FINALIZER not in finalizers:
            return 0
        kept = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
        try:
            api.patch(path, {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": kept}})
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:
                return 0
            if error.code != CONFLICT:
                raise
            found = api.get(path)
        else:
            return 1
    raise TimeoutError(f"{path} was changed by other clients in each of {ATTEMPTS} attempts")


def main(namespace: str, name: str, served: str, operator_labels: str, broker_labels: str = "") -> int:
    """Stop the operator, remove its finalizers, stop the brokers, and return the exit code: brokers that do not stop are no failure."""
    api = own_api()
    try:
        if broker_labels:
            api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}-test")
        stop(api, namespace, f"deployments/{name}-operator", operator_labels)
        released = release_all(api, served.split(","))
    except (OSError, TimeoutError) as error:
        sys.stderr.write(f"failed to remove the operator's finalizers: {error}\n")
        return 1
    sys.stdout.write(f"removed the operator's finalizer from {released} resources\n")
    if not broker_labels:
        return 0
    try:
        stop(api, namespace, f"statefulsets/{name}-broker", broker_labels)
    except (OSError, TimeoutError) as error:
        sys.stderr.write(f"the brokers did not stop before the rest: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
