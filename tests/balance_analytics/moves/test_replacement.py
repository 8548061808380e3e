"""Replacement of proposals: at most one waits for approval, and approved ones are never deleted. Calls of the API and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from balance_analytics import proposing
from balance_analytics.moves.manifests import LABEL, PROPOSER, manifests, proposal_name
from balance_analytics.moves.replacement import Create, InProgress, Keep, ObjectVersion, decide_replacement
from balance_analytics.proposing import ProposingError
from kafka_operator import kinds
from reconciler.kube.port import ConflictError, KubeError, Listing, NotFoundError, RefusedError, UnavailableError
from reconciler.names import Key, Kind
from tests.balance_analytics.moves.test_proposal import proposal

NEW = "main-balance-new"
WAITING = {"clusterRef": {"name": "main"}, "approval": "Required"}


def existing(name: str = "main-balance-old", state: str | None = "Proposed", **changes: Any) -> dict[str, Any]:
    """A Reassignment that the analytics created, as on the API server."""
    labels = {LABEL: changes.pop("by", PROPOSER)}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels}
    metadata |= changes.pop("metadata", {})
    return {"metadata": metadata, "spec": WAITING | changes, "status": {} if state is None else {"state": state}}


OLD = ObjectVersion("main-balance-old", "uid-main-balance-old", "7")


NO_PLAN = {"type": "Ready", "status": "False", "reason": "ConfigMapNotFound"}
INCOMPLETE = existing(NEW, "Failed") | {"status": {"state": "Failed", "conditions": [NO_PLAN]}}
"""A run was killed after it created the Reassignment and before its ConfigMaps."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], Create()),
        ([existing()], Create((OLD,))),
        ([existing(state=None)], Create((OLD,))),
        ([existing(NEW)], Keep(f"uid-{NEW}", "Proposed")),
        ([existing(NEW, "Failed")], Keep(f"uid-{NEW}", "Failed")),
        ([INCOMPLETE], Create((ObjectVersion(NEW, f"uid-{NEW}", "7"),))),
        ([existing(NEW, "RolledBack"), existing()], Keep(f"uid-{NEW}", "RolledBack")),
        ([existing(approvedDigest="sha256:0")], InProgress("main-balance-old")),
        ([existing(approval="Automatic", state=None)], InProgress("main-balance-old")),
        ([existing(state="Running")], InProgress("main-balance-old")),
        ([existing(state="RollingBack", approvedDigest="sha256:0")], InProgress("main-balance-old")),
        ([existing(state="Completed", approvedDigest="sha256:0")], Create()),
        ([existing(state="Cancelled")], Create()),
        ([existing(by="another")], Create()),
        ([existing(clusterRef={"name": "other"})], Create()),
        ([existing(metadata={"deletionTimestamp": "2026-03-02T10:00:00Z"})], Create()),
        ([existing(), existing("main-balance-b", "Running")], InProgress("main-balance-b")),
    ],
)
def test_a_proposal_replaces_only_one_that_waits_for_approval(found: list[dict[str, Any]], expected: object) -> None:
    """It waits for the end of approved ones, and ignores those of other creators and Clusters."""
    assert decide_replacement(found, NEW, "main") == expected


def test_the_same_moves_and_base_have_the_same_name() -> None:
    """So a second run over the same study does not propose again."""
    one, again, other = (proposal_name(proposal(count), "main", "id") for count in (60, 60, 40))

    assert one == again != other
    assert one.startswith("main-balance-")
    assert len(proposal_name(proposal(), "x" * 253)) < 253 - len("-figures")


class FakeApi:
    """A Kubernetes API with the calls that a proposal needs; the call named by `verb` fails with `error`."""

    def __init__(self, verb: str = "", error: KubeError | None = None, found: tuple[dict[str, Any], ...] = ()) -> None:
        self._verb, self._error = verb, error
        self._found = found or (existing(),)
        self.calls: list[str] = []

    def _call(self, verb: str) -> None:
        self.calls.append(verb)
        if verb == self._verb and self._error is not None:
            raise self._error

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        assert (kind, namespace) == (kinds.REASSIGNMENT, "kafka")
        self._call("list reassignments")
        return Listing(self._found, "9")

    async def create_object(self, key: Key, content: Any) -> Any:
        assert content["metadata"]["name"] == key.name
        self._call("create reassignments")
        return {"metadata": {"uid": "uid-new"}}

    async def create_config_map(self, namespace: str, content: Any) -> None:
        assert content["metadata"]["namespace"] == namespace
        owner = content["metadata"]["ownerReferences"][0]["uid"]
        assert owner in {"uid-new", f"uid-{NEW}"}
        self._call("create configmaps")

    async def delete_object(self, key: Key, uid: str, resource_version: str) -> None:
        assert (key, uid, resource_version) == (Key(kinds.REASSIGNMENT, "kafka", OLD.name), OLD.uid, "7")
        self._call("delete reassignments")


@pytest.mark.parametrize(
    ("verb", "error", "message"),
    [
        (
            "list reassignments",
            RefusedError("403"),
            "refuses to list reassignments in namespace kafka: grant the driver's service account",
        ),
        (
            "list reassignments",
            NotFoundError("404"),
            "cannot list reassignments in namespace kafka: check that Steward's CRDs are installed",
        ),
        (
            "list reassignments",
            UnavailableError("x"),
            "failed to list reassignments in namespace kafka",
        ),
        ("delete reassignments", RefusedError("403"), "refuses to delete reassignments in namespace kafka"),
        ("create configmaps", RefusedError("403"), "refuses to create configmaps in namespace kafka"),
        ("create reassignments", RefusedError("403"), "refuses to create reassignments in namespace kafka"),
        ("delete reassignments", ConflictError("409"), "changed during 5 attempts: run this again"),
    ],
)
async def test_an_error_of_the_api_has_verb_resource_and_remedy(verb: str, error: KubeError, message: str) -> None:
    """Also after repeated conflicts."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    with pytest.raises(ProposingError, match=message):
        await proposing._propose(FakeApi(verb, error), objects, "main", "kafka")


async def test_config_maps_are_created_with_their_owner_and_never_read_or_changed() -> None:
    """Least privilege: existing ConfigMaps of the namespace cannot be read or changed. The result names the replaced proposal."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    api = FakeApi()
    done = await proposing._propose(api, objects, "main", "kafka")

    assert api.calls == ["list reassignments", "delete reassignments", "create reassignments", "create configmaps"]
    assert (done.name, done.message) == (NEW, f"Reassignment {NEW} is proposed, replacing main-balance-old")


@pytest.mark.parametrize("error", [None, ConflictError("409")], ids=["missing", "exists"])
async def test_a_repeated_run_creates_the_config_maps_that_a_killed_run_did_not(error: KubeError | None) -> None:
    """The killed run had created the Reassignment. Existing ConfigMaps are unchanged."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    api = FakeApi("create configmaps", error, (existing(NEW),))
    done = await proposing._propose(api, objects, "main", "kafka")

    assert api.calls == ["list reassignments", "create configmaps"]
    assert done.name == NEW
