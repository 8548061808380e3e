"""Publishes a proposal: creates its Reassignment, then its ConfigMaps, owned by the Reassignment.

ConfigMaps are only ever created, with their owner in them: the account that proposes needs no right to read, change or delete a ConfigMap
of the release's namespace. Until they exist the operator waits for them; a run that was killed in between is completed by the next one.
Of an older proposal exactly the version that was seen is deleted, so that one that is approved in that moment stays. What is proposed
is decided in `moves`, and what stands in its way in `moves.standing`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balance_analytics.moves.standing import Create, Keep, UnderWay, decide_standing
from kafka_operator.kube.client import KubeClient
from kafka_operator.kube.login import LoginError, configuration
from kafka_operator.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from kafka_operator.metrics import Metrics
from kafka_operator.names import Key, Kind
from kafka_operator.resources.metadata import owner_reference
from kafka_operator.resources.reassignment import State

MAX_TRIES = 5
"""How often it is looked anew when something changed between a look and a write: the operator writes to a proposal twice or thrice."""

Manifest = dict[str, Any]


class ProposingError(Exception):
    """The proposal could not be made; says which verb on which resource, and what to do."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """`name` of the Reassignment that is there now, None where none was made; `told` says what was done."""

    name: str | None
    told: str


async def propose_in(
    manifests: Sequence[Manifest], cluster: str, namespace: str, kubeconfig: Path | None = None
) -> Proposed:
    """Have the manifests of a proposal (`moves.manifests`) there; raises `ProposingError`."""
    try:
        client = KubeClient(await configuration(kubeconfig, None), Metrics())
    except LoginError as error:
        raise ProposingError(f"{error}. Run this in a pod with a service account, or name a --kubeconfig") from error
    try:
        return await _propose(client, manifests, cluster, namespace)
    finally:
        await client.close()


async def _propose(client: KubeClient, manifests: Sequence[Manifest], cluster: str, namespace: str) -> Proposed:
    *parts, reassignment = manifests
    name: str = reassignment["metadata"]["name"]
    for _ in range(MAX_TRIES):
        with _told("list", "reassignments", namespace):
            listed = await client.list_objects(Kind.REASSIGNMENT, namespace)
        step = decide_standing(listed.objects, name, cluster)
        if isinstance(step, UnderWay):
            words = f"Reassignment {step.name} is approved and has not ended: nothing new is proposed until it has"
            return Proposed(None, words)
        if isinstance(step, Keep):
            await _create_config_maps(client, parts, namespace, name, step.uid)
            return Proposed(name, _kept(name, step.state))
        try:
            uid = await _create(client, step, reassignment, namespace)
        except ConflictError:
            continue
        await _create_config_maps(client, parts, namespace, name, uid)
        instead = f", in the place of {', '.join(one.name for one in step.instead_of)}" if step.instead_of else ""
        approved = reassignment["spec"]["approval"] != "Required"
        return Proposed(name, f"Reassignment {name} is {'carried out at once' if approved else 'proposed'}{instead}")
    raise ProposingError(f"Reassignments in namespace {namespace} changed {MAX_TRIES} times meanwhile: run this again")


def _kept(name: str, state: str) -> str:
    if state == State.PROPOSED.value:
        return f"Reassignment {name} proposes the same already, and waits for approval"
    return f"Reassignment {name} with the same moves is {state} already; delete it once it has ended to have them proposed anew"


async def _create(client: KubeClient, step: Create, reassignment: Manifest, namespace: str) -> str:
    """Delete what is replaced, create the Reassignment and return its uid; ConflictError when something changed."""
    for one in step.instead_of:
        old = Key(Kind.REASSIGNMENT, namespace, one.name)
        with _told("delete", "reassignments", namespace), contextlib.suppress(NotFoundError):
            await client.delete_object(old, one.uid, one.resource_version)
    key = Key(Kind.REASSIGNMENT, namespace, reassignment["metadata"]["name"])
    with _told("create", "reassignments", namespace):
        made = await client.create_object(key, reassignment)
    uid: str = made["metadata"]["uid"]
    return uid


async def _create_config_maps(
    client: KubeClient, parts: Sequence[Manifest], namespace: str, name: str, uid: str
) -> None:
    """Create the ConfigMaps of a Reassignment, which owns them; those that exist stay as they are."""
    owner = owner_reference(Kind.REASSIGNMENT, name, uid)
    for part in parts:
        owned = {**part, "metadata": {**part["metadata"], "ownerReferences": [owner]}}
        # The name contains the digest of the content: one that exists was created by a run that was killed.
        with contextlib.suppress(ConflictError), _told("create", "configmaps", namespace):
            await client.create_config_map(namespace, owned)


@contextlib.contextmanager
def _told(verb: str, resource: str, namespace: str) -> Iterator[None]:
    """Turn what the API server says into what a user does about it; conflicts are for the caller."""
    what = f"{verb} {resource} in namespace {namespace}"
    try:
        yield
    except ConflictError:
        raise
    except RefusedError as error:
        raise ProposingError(
            f"the API server refuses to {what}: allow the driver's service account this verb (chart: analytics.schedule), or mend"
            f" what it names: {error}"
        ) from error
    except NotFoundError as error:
        raise ProposingError(
            f"the API server does not find what it takes to {what}: install Steward's kinds (kubectl apply -f crds/) and see that"
            f" the namespace is there: {error}"
        ) from error
    except KubeError as error:
        raise ProposingError(
            f"the API server does not answer when asked to {what}; run this again once it does: {error}"
        ) from error
