"""What becomes of a proposal beside those that are there: one that waits at most, and none that anybody has approved is touched."""

from __future__ import annotations

from typing import Any

import pytest

from balance_analytics import proposing
from balance_analytics.moves.manifests import LABEL, PROPOSER, manifests, proposal_name
from balance_analytics.moves.standing import Create, Keep, Seen, UnderWay, decide_standing
from balance_analytics.proposing import ProposingError
from kafka_operator.kube.port import ConflictError, KubeError, Listing, NotFoundError, RefusedError, UnavailableError
from kafka_operator.names import Key, Kind
from tests.balance_analytics.test_moves import proposal

NEW = "main-balance-new"
WAITING = {"clusterRef": {"name": "main"}, "approval": "Required"}


def there(name: str = "main-balance-old", state: str | None = "Proposed", **changes: Any) -> dict[str, Any]:
    """A proposal of ours on the API server."""
    labels = {LABEL: changes.pop("by", PROPOSER)}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels}
    metadata |= changes.pop("metadata", {})
    return {"metadata": metadata, "spec": WAITING | changes, "status": {} if state is None else {"state": state}}


OLD = Seen("main-balance-old", "uid-main-balance-old", "7")


NO_PLAN = {"type": "Ready", "status": "False", "reason": "ConfigMapNotFound"}
INCOMPLETE = there(NEW, "Failed") | {"status": {"state": "Failed", "conditions": [NO_PLAN]}}
"""A run was killed after it created the Reassignment and before its ConfigMaps."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], Create()),
        ([there()], Create((OLD,))),
        ([there(state=None)], Create((OLD,))),
        ([there(NEW)], Keep(f"uid-{NEW}", "Proposed")),
        ([there(NEW, "Failed")], Keep(f"uid-{NEW}", "Failed")),
        ([INCOMPLETE], Create((Seen(NEW, f"uid-{NEW}", "7"),))),
        ([there(NEW, "RolledBack"), there()], Keep(f"uid-{NEW}", "RolledBack")),
        ([there(approvedDigest="sha256:0")], UnderWay("main-balance-old")),
        ([there(approval="Automatic", state=None)], UnderWay("main-balance-old")),
        ([there(state="Running")], UnderWay("main-balance-old")),
        ([there(state="RollingBack", approvedDigest="sha256:0")], UnderWay("main-balance-old")),
        ([there(state="Completed", approvedDigest="sha256:0")], Create()),
        ([there(state="Cancelled")], Create()),
        ([there(by="somebody")], Create()),
        ([there(clusterRef={"name": "other"})], Create()),
        ([there(metadata={"deletionTimestamp": "2026-03-02T10:00:00Z"})], Create()),
        ([there(), there("main-balance-b", "Running")], UnderWay("main-balance-b")),
    ],
)
def test_a_newer_proposal_takes_the_place_of_one_that_waits(found: list[dict[str, Any]], expected: object) -> None:
    """And of no other."""
    assert decide_standing(found, NEW, "main") == expected


def test_the_name_follows_from_the_moves_and_where_they_begin() -> None:
    """A second run over the same study proposes nothing a second time."""
    one, again, other = (proposal_name(proposal(count), "main", "id") for count in (60, 60, 40))

    assert one == again != other
    assert one.startswith("main-balance-")
    assert len(proposal_name(proposal(), "x" * 253)) < 253 - len("-figures")


class FakeApi:
    """A Kubernetes API with only the calls that a proposal needs; the call named by `verb` fails."""

    def __init__(self, verb: str = "", error: KubeError | None = None, found: tuple[dict[str, Any], ...] = ()) -> None:
        self._verb, self._error = verb, error
        self._found = found or (there(),)
        self.calls: list[str] = []

    def _call(self, verb: str) -> None:
        self.calls.append(verb)
        if verb == self._verb and self._error is not None:
            raise self._error

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        assert (kind, namespace) == (Kind.REASSIGNMENT, "kafka")
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
        assert (key, uid, resource_version) == (Key(Kind.REASSIGNMENT, "kafka", OLD.name), OLD.uid, "7")
        self._call("delete reassignments")


@pytest.mark.parametrize(
    ("verb", "error", "words"),
    [
        (
            "list reassignments",
            RefusedError("403"),
            "refuses to list reassignments in namespace kafka: allow the driver's service account",
        ),
        (
            "list reassignments",
            NotFoundError("404"),
            "to list reassignments in namespace kafka: install Steward's kinds",
        ),
        (
            "list reassignments",
            UnavailableError("x"),
            "does not answer when asked to list reassignments in namespace kafka",
        ),
        ("delete reassignments", RefusedError("403"), "refuses to delete reassignments in namespace kafka"),
        ("create configmaps", RefusedError("403"), "refuses to create configmaps in namespace kafka"),
        ("create reassignments", RefusedError("403"), "refuses to create reassignments in namespace kafka"),
        ("delete reassignments", ConflictError("409"), "changed 5 times meanwhile: run this again"),
    ],
)
async def test_what_fails_is_told_by_verb_and_resource(verb: str, error: KubeError, words: str) -> None:
    """Bad input says what and what to do."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    with pytest.raises(ProposingError, match=words):
        await proposing._propose(FakeApi(verb, error), objects, "main", "kafka")  # type: ignore[arg-type]


async def test_config_maps_are_created_with_their_owner_and_never_read_or_changed() -> None:
    """Least privilege: a ConfigMap that exists, such as the brokers' own, is out of reach. The result names what was replaced."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    api = FakeApi()
    done = await proposing._propose(api, objects, "main", "kafka")  # type: ignore[arg-type]

    assert api.calls == ["list reassignments", "delete reassignments", "create reassignments", "create configmaps"]
    assert (done.name, done.told) == (NEW, f"Reassignment {NEW} is proposed, in the place of main-balance-old")


@pytest.mark.parametrize("error", [None, ConflictError("409")], ids=["missing", "exists"])
async def test_a_repeated_run_creates_the_config_maps_that_a_killed_run_left_out(error: KubeError | None) -> None:
    """A run killed between Reassignment and ConfigMaps is completed by the next one; ConfigMaps that exist stay as they are."""
    objects = manifests(proposal(), name=NEW, namespace="kafka", cluster="main")
    api = FakeApi("create configmaps", error, (there(NEW),))
    done = await proposing._propose(api, objects, "main", "kafka")  # type: ignore[arg-type]

    assert api.calls == ["list reassignments", "create configmaps"]
    assert done.name == NEW
