"""Has a proposal on the Kubernetes API: its ConfigMaps, then its Reassignment, then whom the ConfigMaps belong to.

Each step may have been done by a run that was killed, and is done once. Until a ConfigMap belongs to its Reassignment it has a label that
says so: by that the next run finds what was left behind, and no plan is read for it. Of an older proposal exactly the version that was seen is
deleted, so that one which somebody approves in that moment stays. Leaves out what is proposed (`moves`) and what stands in its way
(`moves.standing`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balance_analytics.moves.manifests import LABEL, PROPOSER
from balance_analytics.moves.standing import Create, Keep, UnderWay, decide_standing, left_behind
from kafka_operator.kube.client import KubeClient
from kafka_operator.kube.login import LoginError, configuration
from kafka_operator.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from kafka_operator.metrics import Metrics
from kafka_operator.names import Key, Kind
from kafka_operator.resources.metadata import owner_reference
from kafka_operator.resources.reassignment import State

MAX_TRIES = 5
"""How often it is looked anew when something changed between a look and a write: the operator writes to a proposal twice or thrice."""

AWAITS = "steward.dev/awaits-owner"
"""A label of ConfigMaps whose Reassignment is not there yet."""

MAX_LEFT_BEHIND = 40
"""Looked at by one run, of up to 1 MiB each: one killed run leaves 33 at the most."""

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
        there = {raw["metadata"]["name"]: raw["metadata"]["uid"] for raw in listed.objects}
        if isinstance(step, UnderWay):
            await _tidy(client, cluster, namespace, there)
            words = f"Reassignment {step.name} is approved and has not ended: nothing new is proposed until it has"
            return Proposed(None, words)
        if isinstance(step, Keep):
            await _own(client, parts, namespace, name, step.uid)
            await _tidy(client, cluster, namespace, there)
            return Proposed(name, _kept(name, step.state))
        try:
            uid = await _create(client, step, manifests, namespace)
        except ConflictError:
            continue
        await _own(client, parts, namespace, name, uid)
        replaced = {one.name for one in step.instead_of}
        await _tidy(client, cluster, namespace, {one: of for one, of in there.items() if one not in replaced})
        instead = f", in the place of {', '.join(one.name for one in step.instead_of)}" if step.instead_of else ""
        approved = reassignment["spec"]["approval"] != "Required"
        return Proposed(name, f"Reassignment {name} is {'carried out at once' if approved else 'proposed'}{instead}")
    raise ProposingError(f"Reassignments in namespace {namespace} changed {MAX_TRIES} times meanwhile: run this again")


def _kept(name: str, state: str) -> str:
    if state == State.PROPOSED.value:
        return f"Reassignment {name} proposes the same already, and waits for approval"
    return f"Reassignment {name} with the same moves is {state} already; delete it once it has ended to have them proposed anew"


async def _create(client: KubeClient, step: Create, manifests: Sequence[Manifest], namespace: str) -> str:
    """Delete what is replaced, create everything, and return the Reassignment's uid; ConflictError when something changed."""
    for one in step.instead_of:
        old = Key(Kind.REASSIGNMENT, namespace, one.name)
        with _told("delete", "reassignments", namespace), contextlib.suppress(NotFoundError):
            await client.delete_object(old, one.uid, one.resource_version)
    *parts, reassignment = manifests
    for part in parts:
        # The name has the digest of what is in it: one that is there is of a run that was killed.
        with contextlib.suppress(ConflictError), _told("create", "configmaps", namespace):
            await client.create_config_map(namespace, _awaiting(part))
    key = Key(Kind.REASSIGNMENT, namespace, reassignment["metadata"]["name"])
    with _told("create", "reassignments", namespace):
        made = await client.create_object(key, reassignment)
    uid: str = made["metadata"]["uid"]
    return uid


def _awaiting(part: Manifest) -> Manifest:
    metadata = part["metadata"]
    return {**part, "metadata": {**metadata, "labels": {**metadata["labels"], AWAITS: "true"}}}


async def _tidy(client: KubeClient, cluster: str, namespace: str, there: Mapping[str, str]) -> None:
    """Have no ConfigMap without an owner: those whose Reassignment is there are given to it, the others are deleted."""
    with _told("list", "configmaps", namespace):
        found = await client.list_config_maps(namespace, f"{LABEL}={PROPOSER},{AWAITS}", MAX_LEFT_BEHIND)
    for one in left_behind(found, cluster, there):
        verb = "delete" if one.owner is None else "patch"
        another_was_faster = contextlib.suppress(ConflictError, NotFoundError)
        with _told(verb, "configmaps", namespace), another_was_faster:
            if one.owner is None:
                await client.delete_config_map(namespace, one.seen.name, one.seen.uid, one.seen.resource_version)
            else:
                await client.patch_config_map(namespace, one.seen.name, _owned_by(*one.owner))


def _owned_by(name: str, uid: str) -> Manifest:
    """Return a patch that gives a ConfigMap to a Reassignment."""
    owner = owner_reference(Kind.REASSIGNMENT, name, uid)
    return {"metadata": {"ownerReferences": [owner], "labels": {AWAITS: None}}}


async def _own(client: KubeClient, parts: Sequence[Manifest], namespace: str, name: str, uid: str) -> None:
    """Say of the ConfigMaps that they go with the Reassignment."""
    patch = _owned_by(name, uid)
    for part in parts:
        with _told("patch", "configmaps", namespace):
            try:
                await client.patch_config_map(namespace, part["metadata"]["name"], patch)
            except NotFoundError:  # somebody took it away, or the Reassignment is older than its figures
                with contextlib.suppress(ConflictError):
                    metadata = {**part["metadata"], "ownerReferences": patch["metadata"]["ownerReferences"]}
                    await client.create_config_map(namespace, {**part, "metadata": metadata})


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
