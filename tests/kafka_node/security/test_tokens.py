"""Tokens of a token endpoint, over HTTPS on loopback: requests, errors, and renewal."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from kafka_node.security import tokens
from kafka_node.security.tokens import KeptToken, Token, TokenEndpoint, request_token
from kafka_wire.sasl.steps import SaslFailed
from lab.peers.authority import Authority

SECRET = "hunter2 & =ü"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Answer], Awaitable[TokenEndpoint]]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Signs the endpoint's certificate."""
    return Authority(tmp_path)


@pytest.fixture
async def serve(authority: Authority) -> AsyncIterator[Serve]:
    """Start token endpoints; closed after the test."""
    async with AsyncExitStack() as stack:

        async def start(answer: Answer) -> TokenEndpoint:
            application = web.Application()
            application.router.add_post("/token", answer)
            runner = web.AppRunner(application)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*authority.sign("endpoint", "/CN=endpoint"))
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
            port = runner.addresses[0][1]
            trusting = ssl.create_default_context(cafile=str(authority.certificate))
            return TokenEndpoint(f"https://127.0.0.1:{port}/token", "steward", SECRET, "kafka", trusting)

        yield start


async def test_a_token_is_requested_with_the_clients_credentials(serve: Serve) -> None:
    """RFC 6749, sections 4.4.2 and 2.3.1: id and secret are encoded as in a form, and sent as basic authentication."""
    seen: list[tuple[str, dict[str, object]]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers["Authorization"], dict(await request.post())))
        return web.json_response({"access_token": "abc", "token_type": "Bearer", "expires_in": 3600})

    found = await request_token(await serve(answer))

    assert found == Token("abc", 3600)
    login = base64.b64encode(b"steward:hunter2+%26+%3D%C3%BC").decode()
    assert seen == [(f"Basic {login}", {"grant_type": "client_credentials", "scope": "kafka"})]


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (
            401,
            '{"error": "invalid_client", "error_description": "unknown"}',
            "returned status 401: invalid_client unknown",
        ),
        (500, "<html>", "returned status 500: no error code"),
        (302, "", "returned status 302"),
        (200, "[]", "returned no access_token"),
        (200, '{"access_token": 5}', "returned no access_token"),
        (200, '{"access_token": "a", "expires_in": "soon"}', "no number as expires_in"),
        (200, "x" * 200_000, "returned more than 131072 bytes"),
    ],
)
async def test_an_error_of_the_endpoint_has_its_address_and_its_reason(
    serve: Serve, status: int, content: str, message: str
) -> None:
    """The error code of RFC 6749, section 5.2. A redirect is not followed: the secret would be sent to another address."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=content, headers={"Location": "https://127.0.0.1:1/"})

    endpoint = await serve(answer)

    with pytest.raises(SaslFailed) as caught:
        await request_token(endpoint)
    assert caught.value.reason.startswith(f"the token endpoint {endpoint.url} ")
    assert message in caught.value.reason
    assert "hunter2" not in caught.value.reason + repr(endpoint)


async def test_the_certificate_of_the_endpoint_is_verified(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the authorities of the Cluster, or those of the system."""

    async def answer(_: web.Request) -> web.Response:
        raise AssertionError("no request is sent")

    endpoint = await serve(answer)
    other = Authority(tmp_path_factory.mktemp("other"))
    context = ssl.create_default_context(cafile=str(other.certificate))

    with pytest.raises(SaslFailed, match=r"cannot be used: .*certificate"):
        await request_token(TokenEndpoint(endpoint.url, "steward", SECRET, None, context))


async def test_a_silent_endpoint_is_reported(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the time for a request."""
    monkeypatch.setattr(tokens, "TIMEOUT_S", 0.2)
    released = asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    endpoint = await serve(answer)
    with pytest.raises(SaslFailed, match="does not answer within"):
        await request_token(endpoint)
    released.set()


class Source:
    """Returns numbered tokens with a lifetime, or fails."""

    def __init__(self, lifetime_s: float, failure: SaslFailed | None = None) -> None:
        self.lifetime_s = lifetime_s
        self.failure = failure
        self.requests = 0

    async def __call__(self) -> Token:
        self.requests += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return Token(f"token-{self.requests}", self.lifetime_s)


async def test_a_token_is_kept_until_it_is_renewed() -> None:
    """Kafka's sasl.login.refresh.window.factor: connections to many brokers use one token."""
    long, short = Source(3_600), Source(0)
    kept, renewed = KeptToken(long), KeptToken(short)

    assert await asyncio.gather(*(kept() for _ in range(5))) == ["token-1"] * 5
    assert [await renewed() for _ in range(3)] == ["token-1", "token-2", "token-3"]


async def test_a_failed_request_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to many brokers cause one request; later there is another one."""
    source = Source(3_600, SaslFailed("no endpoint"))
    token = KeptToken(source)
    for _ in range(3):
        with pytest.raises(SaslFailed, match="no endpoint"):
            await token()
    assert source.requests == 1

    monkeypatch.setattr(tokens, "PAUSE_S", 0.0)
    later = KeptToken(source)
    with pytest.raises(SaslFailed, match="no endpoint"):
        await later()
    source.failure = None
    assert await later() == "token-3"
