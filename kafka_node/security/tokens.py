"""Tokens for OAUTHBEARER of a token endpoint (client credentials grant, KIP-768), kept until they are renewed."""

import asyncio
import base64
import json
import ssl as tls
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote_plus

import aiohttp

from kafka_node.http_body import ResponseTooLargeError, read_at_most
from kafka_wire.sasl.steps import SaslFailed

RENEW_AT = 0.8
"""Part of a token's lifetime after which the next login gets a new one: Kafka's sasl.login.refresh.window.factor."""
DEFAULT_LIFETIME_S = 60.0
"""Of a token whose lifetime the endpoint does not report (RFC 6749 recommends it)."""
PAUSE_S = 5.0
"""After a failure the same failure is reported for this time: connections to many brokers cause one request."""
TIMEOUT_S = 5.0
"""Of a request to a token endpoint, connection included."""
MAX_RESPONSE_BYTES = 128 * 1024
MAX_ERROR_CHARACTERS = 200
"""Characters of an error of the endpoint that are kept."""
OK = 200


class Token(NamedTuple):
    """A token and its lifetime from now."""

    value: str
    lifetime_s: float


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """A token endpoint, and the client as which tokens are requested from it."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    ssl: tls.SSLContext


class KeptToken:
    """Source of tokens that keeps the last one until it is renewed. `request` raises SaslFailed."""

    def __init__(self, request: Callable[[], Awaitable[Token]]) -> None:
        self._request = request
        self._lock = asyncio.Lock()
        """Concurrent logins cause one request."""
        self._token = ""
        self._failure: SaslFailed | None = None
        self._valid_until = 0.0
        """Of the token, or else of the failure; loop time in s."""

    async def __call__(self) -> str:
        """Return a token. Raises SaslFailed."""
        async with self._lock:
            loop = asyncio.get_running_loop()
            if loop.time() >= self._valid_until:
                try:
                    self._token, lifetime_s = await self._request()
                except SaslFailed as failure:
                    self._failure, self._valid_until = failure, loop.time() + PAUSE_S
                else:
                    self._failure, self._valid_until = None, loop.time() + RENEW_AT * lifetime_s
            if self._failure is not None:
                raise SaslFailed(self._failure.reason)
            return self._token


async def request_token(endpoint: TokenEndpoint) -> Token:
    """Request a token by the client credentials grant (RFC 6749, section 4.4). Raises SaslFailed; its reason has no secret."""
    form = {"grant_type": "client_credentials"} | ({} if endpoint.scope is None else {"scope": endpoint.scope})
    # RFC 6749, section 2.3.1: id and secret are encoded as in a form first.
    login = f"{quote_plus(endpoint.client_id)}:{quote_plus(endpoint.client_secret)}"
    headers = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
            session.post(endpoint.url, data=form, headers=headers, ssl=endpoint.ssl, allow_redirects=False) as response,
        ):
            return _read(endpoint, response.status, await read_at_most(response, MAX_RESPONSE_BYTES))
    except ResponseTooLargeError:
        raise _failed(endpoint, f"returned more than {MAX_RESPONSE_BYTES} bytes") from None
    except TimeoutError:
        raise _failed(endpoint, f"does not answer within {TIMEOUT_S:.0f} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _failed(endpoint, f"cannot be used: {str(error)[:MAX_ERROR_CHARACTERS]}") from None


def _read(endpoint: TokenEndpoint, status: int, content: bytes) -> Token:
    """Read a response; an error has its code and a description (RFC 6749, section 5.2)."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    body = body if isinstance(body, dict) else {}
    if status != OK:
        message = " ".join(str(body[key]) for key in ("error", "error_description") if key in body)
        raise _failed(endpoint, f"returned status {status}: {message[:MAX_ERROR_CHARACTERS] or 'no error code'}")
    token, lifetime_s = body.get("access_token"), body.get("expires_in", DEFAULT_LIFETIME_S)
    if not isinstance(token, str) or not isinstance(lifetime_s, int | float):
        raise _failed(endpoint, "returned no access_token, or no number as expires_in")
    return Token(token, float(lifetime_s))


def _failed(endpoint: TokenEndpoint, message: str) -> SaslFailed:
    return SaslFailed(f"the token endpoint {endpoint.url} {message}")
