"""Copies of JSON documents: those that stand-ins for the Kubernetes API store and return. `copy.deepcopy` takes four times as long."""

from __future__ import annotations

from typing import Any


def copied(document: Any) -> Any:
    """Return a copy that shares no dict and no list with the original."""
    if isinstance(document, dict):
        return {name: copied(value) for name, value in document.items()}
    if isinstance(document, list):
        return [copied(value) for value in document]
    return document
