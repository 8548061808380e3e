"""kstatus: what Flux, Helm 4 and kpt conclude from a resource (sigs.k8s.io/cli-utils, pkg/kstatus/status: Compute)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kstatus(resource: Mapping[str, Any]) -> str:
    """Return Current, InProgress, Failed or Terminating, by the generic rules for kinds that kstatus does not know."""
    metadata, status = resource["metadata"], resource.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
    for name, value in conditions.items():
        if (name, value) == ("Reconciling", "True"):
            return "InProgress"
        if (name, value) == ("Stalled", "True"):
            return "Failed"
    return "InProgress" if conditions.get("Ready", "True") != "True" else "Current"


def check_conditions(resource: Mapping[str, Any]) -> None:
    """Fail where the conditions of a resource of Steward contradict each other; nothing is checked before Ready is there."""
    status = resource.get("status") or {}
    shown = {item["type"]: item for item in status.get("conditions") or ()}
    if "Ready" not in shown:
        return
    following = [name for name in ("Reconciling", "Stalled") if name in shown]
    assert len(following) == (0 if shown["Ready"]["status"] == "True" else 1), shown
    ends = [name for name in ("Complete", "Failed") if name in shown]
    for name in following + ends:
        assert shown[name]["status"] == "True", shown
        assert [shown[name][part] for part in ("reason", "message")] == [
            shown["Ready"][part] for part in ("reason", "message")
        ]
    if resource["kind"] in {"Reassignment", "Election", "SparkApplication"}:
        over = status.get("state") in ENDS
        good = shown["Ready"]["status"] == "True"
        assert ends == ([] if not over else ["Complete"] if good else ["Failed"]), (status.get("state"), shown)
    else:
        assert ends == [], shown


ENDS = {"Completed", "Failed", "Cancelled", "RolledBack", "PartlyFailed"}
