"""An API server in memory behind the Kube port: versions, conflicts, finalizers, generations, and a watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from kafka_operator.names import ORIGIN
from reconciler.kube.port import ConflictError, KubeError, Listing, NewEvent, NotFoundError
from reconciler.names import Key, Kind
from reconciler.resources.metadata import Patch, RawObject, write_time
from tests.reconciler.documents import copied
from tests.reconciler.gate import Gate
from tests.twins.kstatus import check_conditions

START = datetime(2026, 1, 1, 12, tzinfo=UTC)

T = TypeVar("T")


@dataclass(frozen=True)
class WatchEvent:
    type: str
    kind: Kind
    object: RawObject


class FakeKube:
    """All objects; users' own calls are plain methods, the operator's go through `gate`."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.objects: dict[Key, dict[str, Any]] = {}
        self.events: list[NewEvent] = []
        self.writes: list[str] = []
        self.watcher: Callable[[WatchEvent], None] | None = None
        self.ending: set[str] = set()
        """Namespaces that are being deleted."""
        self.secrets: dict[tuple[str, str], dict[str, bytes]] = {}
        """Values by key, by namespace and name."""
        self.config_maps: dict[tuple[str, str], dict[str, Any]] = {}
        """By namespace and name."""
        self.failures: list[KubeError] = []
        """Raised by the operator's next calls instead of an answer."""
        self._version = 100
        self._uid = 0

    # What users do.

    def apply(self, raw: RawObject) -> Key:
        """Create an object, or replace its spec."""
        kind = Kind(raw["kind"])
        key = Key(kind, raw["metadata"]["namespace"], raw["metadata"]["name"])
        held = self.objects.get(key)
        if held is None:
            self._uid += 1
            metadata = {"uid": f"uid-{self._uid:04}", "generation": 1, "creationTimestamp": write_time(_now())}
            held = {**copied(dict(raw)), "metadata": {**raw["metadata"], **metadata}}
            self._keep(key, held, "ADDED")
        elif held["spec"] != raw["spec"]:
            held["spec"] = copied(raw["spec"])
            held["metadata"]["generation"] += 1
            self._keep(key, held, "MODIFIED")
        return key

    def delete(self, key: Key) -> None:
        """Delete an object, or mark it while it has finalizers."""
        held = self.objects[key]
        if held["metadata"].get("finalizers"):
            held["metadata"].setdefault("deletionTimestamp", write_time(_now()))
            held["metadata"]["generation"] += 1
            self._keep(key, held, "MODIFIED")
        else:
            self._drop(key)

    def annotate(self, key: Key, name: str, value: str | None) -> None:
        """Set an annotation, or (None) take it off."""
        annotations = self.objects[key]["metadata"].setdefault("annotations", {})
        annotations.pop(name, None)
        if value is not None:
            annotations[name] = value
        self._keep(key, self.objects[key], "MODIFIED")

    def forge(self, key: Key, status: dict[str, Any]) -> None:
        """Replace a status, as a user who may patch the status subresource."""
        self.objects[key]["status"] = copied(status)
        self._keep(key, self.objects[key], "MODIFIED")

    def strip(self, key: Key) -> None:
        """Take all finalizers and annotations off, as any user who may edit the object does."""
        metadata = self.objects[key]["metadata"]
        metadata["finalizers"], metadata["annotations"] = [], {}
        self._keep(key, self.objects[key], "MODIFIED")

    def restore(self, key: Key) -> None:
        """Remove an object, and create it again without its status, as a restored backup does (Velero keeps the metadata below)."""
        held = copied(self.objects[key])
        self.objects[key]["metadata"]["finalizers"] = []
        self.delete(key)
        kept = ("namespace", "name", "annotations", "finalizers")
        metadata = {name: held["metadata"][name] for name in kept if name in held["metadata"]}
        self.apply({"kind": key.kind.name, "metadata": metadata, "spec": held["spec"]})

    def touch(self, key: Key) -> None:
        """Change an object as another client does."""
        self._keep(key, self.objects[key], "MODIFIED")

    def ready(self, key: Key) -> tuple[str, str, str]:
        """Return status, reason and message of Ready; empty ones before it is there."""
        for condition in self.objects[key].get("status", {}).get("conditions", ()):
            if condition["type"] == "Ready":
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def state(self) -> dict[str, object]:
        """Return what a user sees of all objects, without versions and times."""
        shown = {}
        for key, held in sorted(self.objects.items()):
            status = copied(held.get("status", {}))
            for condition in status.get("conditions", ()):
                del condition["lastTransitionTime"]
            if "conditions" in status:  # a map by type in the API: their order is no difference
                status["conditions"] = {condition["type"]: condition for condition in status["conditions"]}
            for name in ("startTime", "completionTime", "topicId"):
                status.pop(name, None)
            for name in ("breachTime", "quietTime", "unknownTime"):
                status.get("guard", {}).pop(name, None)
            status.get("canary", {}).pop("healthyTime", None)
            status.get("autoRebalance", {}).pop("lastEndTime", None)
            metadata = held["metadata"]
            # When a topic was announced is no difference, just as when a status was written is none.
            notes = {name: text for name, text in metadata.get("annotations", {}).items() if name != ORIGIN}
            shown[str(key)] = (status, metadata.get("finalizers"), notes)
        return shown

    # What the operator does.

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        def effect() -> Listing:
            found = [
                copied(held)
                for key, held in self.objects.items()
                if key.kind == kind and namespace in {None, key.namespace}
            ]
            return Listing(tuple(found), str(self._version))

        return await self._call(f"list {kind}", effect)

    async def get_object(self, key: Key) -> RawObject:
        return await self._call(f"get {key}", lambda: copied(self._held(key)))

    async def create_object(self, key: Key, content: RawObject) -> RawObject:
        def effect() -> RawObject:
            if key in self.objects:
                raise ConflictError(f"{key} exists")
            named = {"namespace": key.namespace, "name": key.name}
            self.apply({"kind": key.kind.name, "metadata": {**content["metadata"], **named}, "spec": content["spec"]})
            self.writes.append(str(key))
            return copied(self.objects[key])

        return await self._call(f"create {key}", effect)

    async def patch_object(self, key: Key, patch: Patch) -> RawObject:
        return await self._call(f"patch {key}", lambda: self._patch_metadata(key, patch))

    async def patch_status(self, key: Key, patch: Patch) -> RawObject:
        return await self._call(f"patch status {key}", lambda: self._patch_status(key, patch))

    async def delete_object(self, key: Key, uid: str, resource_version: str | None = None) -> None:
        def effect() -> None:
            wanted = {"uid": uid} | ({} if resource_version is None else {"resourceVersion": resource_version})
            self._checked(key, {"metadata": wanted})
            self.delete(key)

        await self._call(f"delete {key}", effect)

    async def post_event(self, event: NewEvent) -> None:
        await self._call(f"event {event.key}", lambda: self.events.append(event))

    async def get_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        def effect() -> Mapping[str, bytes]:
            if (namespace, name) not in self.secrets:
                raise NotFoundError(f"Secret {namespace}/{name}")
            return dict(self.secrets[namespace, name])

        return await self._call(f"get Secret {namespace}/{name}", effect)

    async def get_config_map(self, namespace: str, name: str) -> RawObject:
        def effect() -> RawObject:
            if (namespace, name) not in self.config_maps:
                raise NotFoundError(f"ConfigMap {namespace}/{name}")
            return copied(self.config_maps[namespace, name])

        return await self._call(f"get ConfigMap {namespace}/{name}", effect)

    async def create_config_map(self, namespace: str, content: RawObject) -> None:
        def effect() -> None:
            name = content["metadata"]["name"]
            if (namespace, name) in self.config_maps:
                raise ConflictError(f"ConfigMap {namespace}/{name}")
            self.config_maps[namespace, name] = copied(dict(content))

        await self._call(f"create ConfigMap {namespace}/{content['metadata']['name']}", effect)

    async def namespace_ends(self, name: str) -> bool:
        return await self._call(f"namespace {name}", lambda: name in self.ending)

    async def close(self) -> None:
        """Nothing is open."""

    async def _call(self, name: str, effect: Callable[[], T]) -> T:
        await asyncio.sleep(0.001)  # others get their turn, as over a network
        if self.failures:
            raise self.failures.pop(0)
        return self.gate.call(f"kube {name}", effect)

    def _held(self, key: Key) -> dict[str, Any]:
        if key not in self.objects:
            raise NotFoundError(str(key))
        return self.objects[key]

    def _checked(self, key: Key, patch: Patch) -> dict[str, Any]:
        held = self._held(key)
        for name in ("resourceVersion", "uid"):
            wanted = patch["metadata"].get(name, held["metadata"][name])
            if wanted != held["metadata"][name]:
                raise ConflictError(f"{key}: {name} is {held['metadata'][name]}, not {wanted}")
        self.writes.append(str(key))
        return held

    def _patch_metadata(self, key: Key, patch: Patch) -> RawObject:
        held = self._checked(key, patch)
        metadata = held["metadata"]
        if "finalizers" in patch["metadata"]:
            metadata["finalizers"] = list(patch["metadata"]["finalizers"])
        for name, value in patch["metadata"].get("annotations", {}).items():
            annotations = metadata.setdefault("annotations", {})
            annotations.pop(name, None)
            if value is not None:
                annotations[name] = value
        if "spec" in patch:
            held["spec"] |= patch["spec"]
            metadata["generation"] += 1
        if "deletionTimestamp" in metadata and not metadata["finalizers"]:
            answer = copied(held)
            self._drop(key)
            return answer
        self._keep(key, held, "MODIFIED")
        return copied(held)

    def _patch_status(self, key: Key, patch: Patch) -> RawObject:
        held = self._checked(key, patch)
        held["status"] = _merged(held.get("status", {}), patch["status"])
        check_conditions(held)
        self._keep(key, held, "MODIFIED")
        return copied(held)

    def _keep(self, key: Key, held: dict[str, Any], event: str) -> None:
        self._version += 1
        held["metadata"]["resourceVersion"] = str(self._version)
        self.objects[key] = held
        self._tell(event, key, held)

    def _drop(self, key: Key) -> None:
        self._version += 1
        held = self.objects.pop(key)
        held["metadata"]["resourceVersion"] = str(self._version)
        self._tell("DELETED", key, held)
        self._collect(held["metadata"]["uid"])

    def _collect(self, uid: str) -> None:
        """Delete what an object owned that is gone, as Kubernetes' garbage collector does."""
        for key, held in list(self.objects.items()):
            if any(owner["uid"] == uid for owner in held["metadata"].get("ownerReferences") or ()):
                self.delete(key)

    def _tell(self, event: str, key: Key, held: dict[str, Any]) -> None:
        if self.watcher is not None:
            self.watcher(WatchEvent(event, key.kind, copied(held)))


def _merged(current: Any, patch: Any) -> Any:
    """Merge a patch (RFC 7386): objects member by member, None takes away, all else replaces."""
    if not isinstance(patch, dict):
        return copied(patch)
    merged = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _now() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())
