"""Plans in ConfigMaps: plans provided by users, and large plans with their base stored by the operator.

ConfigMaps of the operator have the digest in their name, are immutable, and are owned by the Reassignment, so that they are deleted with
it. Their content is used only if its digest matches the status. Recently used plans are kept in a bounded memory cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from kafka_operator import kinds
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_document import Document, DocumentError, read_config_maps
from kafka_operator.decide.plans.plan_packing import Recorded, packed, unpack
from kafka_operator.decide.reassignments.reassignment_steps import StorePlan
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.reassignment_records import Stored
from kafka_operator.resources.reassignment_terms import PlanFrom
from reconciler.kube.port import ConflictError, Kube, NotFoundError, RefusedError
from reconciler.names import COMPONENT
from reconciler.resources.metadata import RawObject, owner_reference

MAX_KEPT_PARTITIONS = 500_000
"""Partitions of plans in memory: at most some 300 MB. A larger plan is cached only by itself."""

MAX_NAME_LENGTH = 200
"""Characters of the Reassignment's name in a ConfigMap's: with digest and number it stays below the 253 characters of an object's name."""

DIGEST_CHARACTERS = 16


class PlanStore:
    """Reads and stores plans; calls may raise KubeError when the API server does not answer."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._kept: dict[str, Recorded] = {}

    async def read(self, namespace: str, plan_from: PlanFrom) -> Document | PlanProblem:
        """Return the plan of a user's ConfigMaps."""
        raws: list[RawObject] = []
        for name in plan_from.config_maps:
            try:
                raws.append(await self._kube.get_config_map(namespace, name))
            except NotFoundError:
                message = f"Namespace {namespace} has no ConfigMap {name}, which spec.planFrom refers to. Create it."
                return PlanProblem("ConfigMapNotFound", message, may_pass=True)
            except RefusedError as error:
                return PlanProblem(
                    "ConfigMapNotReadable",
                    f"The operator is not allowed to read ConfigMap {name}: {error}.",
                    may_pass=True,
                )
        try:
            return read_config_maps(raws)
        except DocumentError as error:
            return PlanProblem("InvalidPlan", f"{error} Correct the plan, and set its digest in spec.planFrom.digest.")

    async def keep(self, item: Reassignment, step: StorePlan) -> Stored:
        """Store plan and base in ConfigMaps; existing ones were stored by an earlier process."""
        names = []
        for number, data in enumerate(packed(step.recorded)):
            name = _name(item, step.digest, number)
            with contextlib.suppress(ConflictError):  # its name has the digest, which is verified when it is read
                await self._kube.create_config_map(item.key.namespace, _config_map(item, name, data))
            names.append(name)
        self._remember(step.digest, step.recorded)
        return Stored(tuple(names), len(step.recorded.plan))

    async def load(self, item: Reassignment) -> Recorded | PlanProblem:
        """Return plan and base of the status."""
        status = item.status
        if status.stored is None:
            assert status.plan is not None, item.key
            assert status.base is not None, item.key
            return Recorded(status.plan, status.base)
        digest = status.digest or ""
        if digest in self._kept:
            self._remember(digest, self._kept.pop(digest))
            return self._kept[digest]
        raws: list[RawObject] = []
        for name in status.stored.config_maps:
            try:
                raws.append(await self._kube.get_config_map(item.key.namespace, name))
            except NotFoundError:
                return _lost(f"ConfigMap {name}, which contains plan and base, was deleted.")
        return self._loaded(digest, raws)

    def _loaded(self, digest: str, raws: Sequence[RawObject]) -> Recorded | PlanProblem:
        try:
            recorded = unpack(raws)
        except DocumentError as error:
            return _lost(str(error))
        if recorded.digest != digest:
            return _lost(f"The ConfigMaps with plan and base have the digest {recorded.digest}, not {digest}.")
        self._remember(digest, recorded)
        return recorded

    def _remember(self, digest: str, recorded: Recorded) -> None:
        self._kept[digest] = recorded  # moved to the end: ordered by last use
        while len(self._kept) > 1 and sum(len(item.plan) for item in self._kept.values()) > MAX_KEPT_PARTITIONS:
            del self._kept[next(iter(self._kept))]


def _name(item: Reassignment, digest: str, number: int) -> str:
    short = digest.partition(":")[2][:DIGEST_CHARACTERS]
    return f"{item.key.name[:MAX_NAME_LENGTH].rstrip('-.')}-plan-{short}-{number}"


def _config_map(item: Reassignment, name: str, data: dict[str, str]) -> RawObject:
    owner = owner_reference(kinds.REASSIGNMENT, item.key.name, item.metadata.uid)
    return {
        "metadata": {
            "name": name,
            "namespace": item.key.namespace,
            "labels": {"app.kubernetes.io/managed-by": COMPONENT},
            "ownerReferences": [owner],
        },
        "immutable": True,
        "binaryData": data,
    }


def _lost(what: str) -> PlanProblem:
    message = (
        f"{what} The Reassignment can neither continue nor be rolled back. Restore the data, or delete this Reassignment; "
        "kafka-reassign-partitions.sh --list shows moves in progress."
    )
    return PlanProblem("PlanLost", message)
