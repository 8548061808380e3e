"""Kube port on the official client's asyncio API: plain requests, with its authentication and TLS.

The typed methods of the client validate every argument with pydantic and have no types for custom resources, so requests
are made one level below. A throttled call (429, or 503 with Retry-After) is retried a few times here; all other retries
are up to the engine, which backs off.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration

from reconciler.kube.events import event_body
from reconciler.kube.port import (
    ConflictError,
    KubeError,
    Listing,
    NewEvent,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from reconciler.metrics import Metrics
from reconciler.names import API_VERSION, COMPONENT, Key, Kind
from reconciler.resources.metadata import Patch, RawObject

REQUEST_TIMEOUT_S = 15.0
"""Timeout of a response; the API server's own limit for a request is 60 s, a healthy one answers in milliseconds."""

PAGE_SIZE = 500
"""Objects of one page of a list: what kubectl and client-go ask for."""

MAX_ATTEMPTS = 4
"""Attempts of a call while the server answers with Retry-After; then the engine's backoff takes over."""

MAX_RETRY_AFTER_S = 5.0
"""Longest Retry-After that is obeyed here."""

MAX_LIST_RESTARTS = 3
"""Number of restarts of a list whose continue token has expired (410)."""

MERGE_PATCH = "application/merge-patch+json"
RETRY_AFTER_STATUSES = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


class ExpiredError(KubeError):
    """A list's continue token has expired."""


class KubeClient:
    """The Kubernetes API of one configuration."""

    def __init__(self, configuration: Configuration, metrics: Metrics) -> None:
        self._client = ApiClient(configuration)
        self._metrics = metrics

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        """Return all objects of a kind, page by page; a list whose token expires is restarted."""
        for _ in range(MAX_LIST_RESTARTS):
            try:
                return await self._list_once(kind, namespace)
            except ExpiredError:
                continue
        raise UnavailableError(f"the list of {kind.plural} expired {MAX_LIST_RESTARTS} times before its end")

    async def get_object(self, key: Key) -> RawObject:
        """Return an object."""
        return await self.call(f"get_{key.kind.name.lower()}", "GET", _path(key))

    async def create_object(self, key: Key, content: RawObject) -> RawObject:
        """Create an object from its metadata and spec, and return it."""
        named = {"namespace": key.namespace, "name": key.name}
        body = {
            "apiVersion": API_VERSION,
            "kind": key.kind.name,
            "metadata": {**content["metadata"], **named},
            "spec": content["spec"],
        }
        return await self.call(
            f"create_{key.kind.name.lower()}", "POST", _managed(_collection(key.kind, key.namespace)), body
        )

    async def patch_object(self, key: Key, patch: Patch) -> RawObject:
        """Merge a patch into an object, its status excepted."""
        return await self.call(f"patch_{key.kind.name.lower()}", "PATCH", _managed(_path(key)), patch)

    async def patch_status(self, key: Key, patch: Patch) -> RawObject:
        """Merge a patch into an object's status."""
        return await self.call(
            f"patch_{key.kind.name.lower()}_status", "PATCH", _managed(f"{_path(key)}/status"), patch
        )

    async def delete_object(self, key: Key, uid: str, resource_version: str | None = None) -> None:
        """Delete an object as `delete` does."""
        await self.delete(f"delete_{key.kind.name.lower()}", _path(key), uid, resource_version)

    async def post_event(self, event: NewEvent) -> None:
        """Create an event, once: the same event about the same version of an object has the same name."""
        path = core_path(event.key.namespace, "events")
        with contextlib.suppress(
            ConflictError
        ):  # already created, by a call whose response was lost, or by an earlier process
            await self.call("post_event", "POST", path, event_body(event))

    async def get_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """Return the values of a Secret by key."""
        found = await self.call("get_secret", "GET", core_path(namespace, "secrets", name))
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    async def get_config_map(self, namespace: str, name: str) -> RawObject:
        """Return a ConfigMap."""
        return await self.call("get_config_map", "GET", core_path(namespace, "configmaps", name))

    async def create_config_map(self, namespace: str, content: RawObject) -> None:
        """Create a ConfigMap."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", **content}
        await self.call("create_config_map", "POST", _managed(core_path(namespace, "configmaps")), body)

    async def namespace_ends(self, name: str) -> bool:
        """Return whether a namespace is being deleted, or is gone."""
        try:
            found = await self.call("get_namespace", "GET", f"/api/v1/namespaces/{quote(name, safe='')}")
        except NotFoundError:
            return True
        return "deletionTimestamp" in found["metadata"]

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _list_once(self, kind: Kind, namespace: str | None) -> Listing:
        found: list[RawObject] = []
        token = ""
        while True:
            query = {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
            path = f"{_collection(kind, namespace)}?{urlencode(query)}"
            page = await self.call(f"list_{kind.plural}", "GET", path)
            found.extend(page["items"])
            token = page["metadata"].get("continue") or ""
            if not token:
                return Listing(tuple(found), page["metadata"]["resourceVersion"])

    async def call(self, name: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Make one call and return its response; `name` is its name in the metrics."""
        answer: dict[str, Any] = json.loads(await self._ask(name, method, path, body))
        return answer

    async def delete(self, name: str, path: str, uid: str, resource_version: str | None = None) -> None:
        """Delete the object with this uid, and this version if given; owned objects are collected in the background.

        ConflictError when it is another object of that name, or has changed.
        """
        preconditions = {"uid": uid} | ({} if resource_version is None else {"resourceVersion": resource_version})
        await self.call(name, "DELETE", path, {"preconditions": preconditions, "propagationPolicy": "Background"})

    async def call_text(self, name: str, path: str) -> str:
        """Get a response that is not JSON, such as a log; invalid UTF-8 is replaced."""
        return (await self._ask(name, "GET", path, None)).decode(errors="replace")

    async def _ask(self, name: str, method: str, path: str, body: Any) -> bytes:
        with self._metrics.kube_call(name):
            for attempt in range(1, MAX_ATTEMPTS + 1):
                status, retry_after_s, data = await self._request(method, path, body)
                if status not in RETRY_AFTER_STATUSES or retry_after_s is None or attempt == MAX_ATTEMPTS:
                    break
                await asyncio.sleep(min(retry_after_s, MAX_RETRY_AFTER_S))
        return _answer(status, data, f"{method} {path}")

    async def _request(self, method: str, path: str, body: Any) -> tuple[int, float | None, bytes]:
        """Return status, Retry-After in seconds, and body."""
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        try:
            _, url, headers, payload, _ = await self._client.param_serialize(
                method,
                path,
                header_params={"Accept": "application/json", "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
            )
            response = await self._client.call_api(method, url, headers, payload, _request_timeout=REQUEST_TIMEOUT_S)
            data = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise UnavailableError(f"{method} {path}: {type(error).__name__}: {error}") from error
        return response.status, _seconds(response.getheader("Retry-After")), data


def _answer(status: int, data: bytes, what: str) -> bytes:
    """Return the body of a success; raise the exception of its status otherwise."""
    if status < HTTPStatus.BAD_REQUEST:
        return data
    message = f"{what}: {status} {_message(data)}"
    if status == HTTPStatus.NOT_FOUND:
        raise NotFoundError(message)
    if status == HTTPStatus.CONFLICT:
        raise ConflictError(message)
    if status == HTTPStatus.GONE:
        raise ExpiredError(message)
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise UnavailableError(message)
    raise RefusedError(message)


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return ""


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdecimal() else None


def _collection(kind: Kind, namespace: str | None) -> str:
    place = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    return f"/apis/{API_VERSION}{place}/{kind.plural}"


def _path(key: Key) -> str:
    return f"{_collection(key.kind, key.namespace)}/{quote(key.name, safe='')}"


def core_path(namespace: str, plural: str, name: str | None = None) -> str:
    """Return the path of the core API's objects of a kind in a namespace, or of one of them.

    >>> core_path("kafka", "pods", "broker-0")
    '/api/v1/namespaces/kafka/pods/broker-0'
    """
    place = f"/api/v1/namespaces/{quote(namespace, safe='')}/{plural}"
    return place if name is None else f"{place}/{quote(name, safe='')}"


def _managed(path: str) -> str:
    return f"{path}?fieldManager={COMPONENT}"
