"""The Kubernetes client over HTTP: what is sent, and what each status means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from kafka_operator import kinds
from reconciler.kube import client as client_module
from reconciler.kube.client import MAX_ATTEMPTS, KubeClient
from reconciler.kube.port import (
    ConflictError,
    KubeError,
    NewEvent,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from reconciler.metrics import Metrics
from reconciler.names import Key

ORDERS = Key(kinds.TOPIC, "shop", "orders")


class Api:
    """A server that returns prepared responses, and records the requests."""

    def __init__(self) -> None:
        self.answers: list[web.Response] = []
        self.asked: list[tuple[str, str, str, Any]] = []
        self.headers: list[dict[str, str]] = []

    def answer(self, status: int, body: object = None, **headers: str) -> None:
        """Have the next request answered so."""
        self.answers.append(
            web.json_response(body or {}, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})
        )

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.method, request.path_qs, request.content_type, body))
        self.headers.append(dict(request.headers))
        return self.answers.pop(0)


@pytest.fixture
async def api() -> AsyncIterator[tuple[Api, KubeClient]]:
    """A server and a client of it."""
    fake = Api()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    async with TestServer(app) as server:
        configuration = Configuration(host=f"http://127.0.0.1:{server.port}")
        configuration.api_key["BearerToken"] = "Bearer secret-token"
        kube = KubeClient(configuration, Metrics())
        yield fake, kube
        await kube.close()


async def test_an_object_is_created_in_its_namespace_under_its_name(api: tuple[Api, KubeClient]) -> None:
    """One that exists already is a conflict, by which the caller knows that it was created before."""
    fake, kube = api
    fake.answer(201, {"kind": "Reassignment"})
    fake.answer(409, {"message": "exists"})
    key = Key(kinds.REASSIGNMENT, "shop", "orders-rf3-2")

    await kube.create_object(key, {"metadata": {"labels": {"a": "b"}}, "spec": {"goal": {}}})

    expected = {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "Reassignment",
        "metadata": {"labels": {"a": "b"}, "namespace": "shop", "name": "orders-rf3-2"},
        "spec": {"goal": {}},
    }
    path = "/apis/steward.dev/v1alpha1/namespaces/shop/reassignments?fieldManager=steward-operator"
    assert fake.asked[0] == ("POST", path, "application/json", expected)
    with pytest.raises(ConflictError):
        await kube.create_object(key, {"metadata": {}, "spec": {}})


async def test_a_status_patch_goes_to_the_status_as_a_merge_patch(api: tuple[Api, KubeClient]) -> None:
    """With our field manager and the token."""
    fake, kube = api
    fake.answer(200, {"kind": "Topic"})

    assert await kube.patch_status(ORDERS, {"status": {"partitions": None}}) == {"kind": "Topic"}

    path = "/apis/steward.dev/v1alpha1/namespaces/shop/topics/orders/status?fieldManager=steward-operator"
    assert fake.asked == [("PATCH", path, "application/merge-patch+json", {"status": {"partitions": None}})]
    assert fake.headers[0]["Authorization"] == "Bearer secret-token"


async def test_what_is_deleted_must_be_as_it_was_seen(api: tuple[Api, KubeClient]) -> None:
    """By uid, and by version where one is named; another one of that name is a conflict."""
    fake, kube = api
    fake.answer(200)
    fake.answer(409, {"message": "the UID in the precondition does not match"})

    await kube.delete_object(ORDERS, "uid-1")
    with pytest.raises(ConflictError):
        await kube.delete_object(ORDERS, "uid-2", "7")

    found = [(method, path, body) for method, path, _, body in fake.asked]
    background = {"propagationPolicy": "Background"}
    assert found == [
        (
            "DELETE",
            "/apis/steward.dev/v1alpha1/namespaces/shop/topics/orders",
            {"preconditions": {"uid": "uid-1"}} | background,
        ),
        (
            "DELETE",
            "/apis/steward.dev/v1alpha1/namespaces/shop/topics/orders",
            {"preconditions": {"uid": "uid-2", "resourceVersion": "7"}} | background,
        ),
    ]


async def test_an_event_is_posted_in_the_resources_namespace(api: tuple[Api, KubeClient]) -> None:
    """core/v1."""
    fake, kube = api
    fake.answer(201)

    await kube.post_event(NewEvent(ORDERS, "uid", "7", True, "InvalidConfig", "Unknown"))

    ((method, path, _, body),) = fake.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/shop/events")
    assert body["reason"] == "InvalidConfig"
    fake.answer(409, {"message": "already exists"})
    await kube.post_event(NewEvent(ORDERS, "uid", "7", True, "InvalidConfig", "Unknown"))  # already posted


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, NotFoundError),
        (409, ConflictError),
        (400, RefusedError),
        (403, RefusedError),
        (422, RefusedError),
        (500, UnavailableError),
        (504, UnavailableError),
        (429, UnavailableError),
    ],
)
async def test_each_status_means_what_is_to_be_done(
    api: tuple[Api, KubeClient], status: int, error: type[KubeError]
) -> None:
    """Gone, read again, give up for now, try again; with the server's words."""
    fake, kube = api
    fake.answer(status, {"message": "the server's words"})

    with pytest.raises(error, match="the server's words"):
        await kube.get_object(ORDERS)


async def test_calls_are_repeated_after_the_time_of_retry_after(api: tuple[Api, KubeClient]) -> None:
    """429 with Retry-After is repeated, a few times."""
    fake, kube = api
    for _ in range(MAX_ATTEMPTS - 1):
        fake.answer(429, Retry_After="0")
    fake.answer(200, {"kind": "Topic"})

    assert await kube.get_object(ORDERS) == {"kind": "Topic"}

    for _ in range(MAX_ATTEMPTS):
        fake.answer(429, Retry_After="0")
    with pytest.raises(UnavailableError):
        await kube.get_object(ORDERS)


async def test_a_list_is_read_page_by_page(api: tuple[Api, KubeClient]) -> None:
    """Limit and continue; the version of the whole."""
    fake, kube = api
    fake.answer(200, {"metadata": {"resourceVersion": "9", "continue": "next"}, "items": [{"n": 1}]})
    fake.answer(200, {"metadata": {"resourceVersion": "9"}, "items": [{"n": 2}]})

    listing = await kube.list_objects(kinds.TOPIC, None)

    assert listing.objects == ({"n": 1}, {"n": 2})
    assert listing.resource_version == "9"
    assert [path.partition("?")[2] for _, path, _, _ in fake.asked] == ["limit=500", "limit=500&continue=next"]


async def test_a_list_that_expires_starts_again(api: tuple[Api, KubeClient]) -> None:
    """410, a few times."""
    fake, kube = api
    fake.answer(200, {"metadata": {"resourceVersion": "9", "continue": "next"}, "items": [{"n": 1}]})
    fake.answer(410, {"message": "too old"})
    fake.answer(200, {"metadata": {"resourceVersion": "12"}, "items": [{"n": 3}]})

    listing = await kube.list_objects(kinds.TOPIC, "shop")

    assert listing.objects == ({"n": 3},)
    for _ in range(client_module.MAX_LIST_RESTARTS):
        fake.answer(410)
    with pytest.raises(UnavailableError):
        await kube.list_objects(kinds.TOPIC, "shop")


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """No process listens on port 1."""
    kube = KubeClient(Configuration(host="http://127.0.0.1:1"), Metrics())
    try:
        with pytest.raises(UnavailableError):
            await kube.get_object(ORDERS)
    finally:
        await kube.close()


async def test_a_server_that_never_answers_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time limit; the call may have been carried out."""
    monkeypatch.setattr(client_module, "REQUEST_TIMEOUT_S", 0.2)
    ended = asyncio.Event()

    async def never(_: web.Request) -> web.Response:
        await ended.wait()
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", never)
    async with TestServer(app) as server:
        kube = KubeClient(Configuration(host=f"http://127.0.0.1:{server.port}"), Metrics())
        with pytest.raises(UnavailableError):
            await kube.get_object(ORDERS)
        await kube.close()
        ended.set()


async def test_a_secret_is_got_by_its_name_alone(api: tuple[Api, KubeClient]) -> None:
    """Values as bytes; an empty one; one that is not there, and one that may not be got."""
    fake, kube = api
    fake.answer(200, {"kind": "Secret", "data": {"password": "aHVudGVyMg==", "ca.crt": ""}})
    fake.answer(200, {"kind": "Secret"})
    fake.answer(404, {"message": "not found"})
    fake.answer(403, {"message": "forbidden"})

    assert await kube.get_secret("shop", "kafka-user") == {"password": b"hunter2", "ca.crt": b""}
    assert await kube.get_secret("shop", "empty") == {}
    with pytest.raises(NotFoundError):
        await kube.get_secret("shop", "gone")
    with pytest.raises(RefusedError) as caught:
        await kube.get_secret("shop", "kafka-user")
    assert "hunter2" not in str(caught.value)
    assert fake.asked[0][:2] == ("GET", "/api/v1/namespaces/shop/secrets/kafka-user")
