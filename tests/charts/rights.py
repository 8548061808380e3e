"""Rights in words that compare: what the operator checks at its start, and what the chart grants."""

from __future__ import annotations

from kafka_operator.rights import needed_rights
from kafka_operator.settings import OperatorSettings
from tests.charts.rendering import Resource

Granted = set[tuple[str, str, str, str | None]]
"""(verb, group, resource, namespace)."""


def needed(settings: OperatorSettings) -> Granted:
    """Return what an operator with these settings asks for."""
    return {
        (
            right.verb,
            right.group,
            right.resource + (f"/{right.subresource}" if right.subresource else ""),
            right.namespace,
        )
        for right in needed_rights(settings)
    }


def granted(resources: list[Resource], account: str) -> Granted:
    """Return every rule that is bound to an account."""
    found = set()
    for binding in resources:
        if "roleRef" in binding and account in {subject["name"] for subject in binding["subjects"]}:
            namespace = binding["metadata"].get("namespace")
            role = next(
                item
                for item in resources
                if (binding["roleRef"]["kind"], binding["roleRef"]["name"], namespace)
                == (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace"))
            )
            for rule in role["rules"]:
                for group in rule["apiGroups"]:
                    found |= {(verb, group, name, namespace) for name in rule["resources"] for verb in rule["verbs"]}
    return found
