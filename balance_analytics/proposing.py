"""Publishes a proposal: creates its Reassignment, then its ConfigMaps, owned by the Reassignment.

ConfigMaps are only created, with their owner reference: the service account needs no right to read, change or delete ConfigMaps of the
release's namespace. The operator waits until they exist; if a run is killed in between, the next one creates them. An older proposal is
deleted only in the version that was read, so that one that is approved at the same moment is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balance_analytics.moves.replacement import Create, InProgress, Keep, decide_replacement
from kafka_operator import kinds
from kafka_operator.resources.reassignment import State
from reconciler.kube.client import KubeClient
from reconciler.kube.login import LoginError, configuration
from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from reconciler.metrics import Metrics
from reconciler.names import Key
from reconciler.resources.metadata import owner_reference

MAX_ATTEMPTS = 5
"""Attempts after conflicts: the operator writes two or three times to a new proposal."""

Manifest = dict[str, Any]


class ProposingError(Exception):
    """The proposal could not be created; the message has the verb, the resource and what to do."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """`name` of the current Reassignment, or None if none was created; `message` describes what was done."""

    name: str | None
    message: str


async def propose_in(
    manifests: Sequence[Manifest], cluster: str, namespace: str, kubeconfig: Path | None = None
) -> Proposed:
    """Create the objects of a proposal (`moves.manifests`) unless they exist; raises `ProposingError`."""
    try:
        client = KubeClient(await configuration(kubeconfig, None), Metrics())
    except LoginError as error:
        raise ProposingError(f"{error}. Run this in a pod with a service account, or set --kubeconfig") from error
    try:
        return await _propose(client, manifests, cluster, namespace)
    finally:
        await client.close()


async def _propose(client: KubeClient, manifests: Sequence[Manifest], cluster: str, namespace: str) -> Proposed:
    *parts, reassignment = manifests
    name: str = reassignment["metadata"]["name"]
    for _ in range(MAX_ATTEMPTS):
        with _errors_explained("list", "reassignments", namespace):
            listed = await client.list_objects(kinds.REASSIGNMENT, namespace)
        step = decide_replacement(listed.objects, name, cluster)
        if isinstance(step, InProgress):
            message = f"Reassignment {step.name} is approved and has not ended: no other is proposed until then"
            return Proposed(None, message)
        if isinstance(step, Keep):
            await _create_config_maps(client, parts, namespace, name, step.uid)
            return Proposed(name, _kept(name, step.state))
        try:
            uid = await _create(client, step, reassignment, namespace)
        except ConflictError:
            continue
        await _create_config_maps(client, parts, namespace, name, uid)
        replacing = f", replacing {', '.join(replaced.name for replaced in step.replaces)}" if step.replaces else ""
        approved = reassignment["spec"]["approval"] != "Required"
        return Proposed(
            name, f"Reassignment {name} is {'executed without approval' if approved else 'proposed'}{replacing}"
        )
    raise ProposingError(
        f"Reassignments in namespace {namespace} changed during {MAX_ATTEMPTS} attempts: run this again"
    )


def _kept(name: str, state: str) -> str:
    if state == State.PROPOSED.value:
        return f"Reassignment {name} already proposes the same and waits for approval"
    return f"Reassignment {name} with the same moves is already {state}; delete it after its end to propose them again"


async def _create(client: KubeClient, step: Create, reassignment: Manifest, namespace: str) -> str:
    """Delete replaced proposals, create the Reassignment and return its uid. Raises ConflictError if an object has changed."""
    for replaced in step.replaces:
        old = Key(kinds.REASSIGNMENT, namespace, replaced.name)
        with _errors_explained("delete", "reassignments", namespace), contextlib.suppress(NotFoundError):
            await client.delete_object(old, replaced.uid, replaced.resource_version)
    key = Key(kinds.REASSIGNMENT, namespace, reassignment["metadata"]["name"])
    with _errors_explained("create", "reassignments", namespace):
        created = await client.create_object(key, reassignment)
    uid: str = created["metadata"]["uid"]
    return uid


async def _create_config_maps(
    client: KubeClient, parts: Sequence[Manifest], namespace: str, name: str, uid: str
) -> None:
    """Create the ConfigMaps of a Reassignment, which owns them; existing ones are unchanged."""
    owner = owner_reference(kinds.REASSIGNMENT, name, uid)
    for part in parts:
        owned = {**part, "metadata": {**part["metadata"], "ownerReferences": [owner]}}
        # The name contains the digest of the contents: an existing one was created by a run that was killed.
        with contextlib.suppress(ConflictError), _errors_explained("create", "configmaps", namespace):
            await client.create_config_map(namespace, owned)


@contextlib.contextmanager
def _errors_explained(verb: str, resource: str, namespace: str) -> Iterator[None]:
    """Raise ProposingError with a remedy for errors of the API server. Conflicts are passed on."""
    request = f"{verb} {resource} in namespace {namespace}"
    try:
        yield
    except ConflictError:
        raise
    except RefusedError as error:
        raise ProposingError(
            f"the API server refuses to {request}: grant the driver's service account this verb (chart: analytics.schedule), or fix"
            f" the cause that it reports: {error}"
        ) from error
    except NotFoundError as error:
        raise ProposingError(
            f"the API server cannot {request}: check that Steward's CRDs are installed (kubectl apply -f crds/) and that"
            f" the namespace exists: {error}"
        ) from error
    except KubeError as error:
        raise ProposingError(f"the API server failed to {request}; run this again later: {error}") from error
