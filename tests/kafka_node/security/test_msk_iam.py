"""Tokens of AWS MSK IAM, against an independent implementation of Signature Version 4, and a fake AWS STS. MSK itself is not asked."""

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from aiohttp import web

from kafka_node.security.aws_identity import AwsIdentity
from kafka_node.security.msk_iam import request_msk_token
from kafka_wire.sasl.oauthbearer import start_oauthbearer_client
from kafka_wire.sasl.steps import SaslFailed

KEY_ID, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/steward"
ASSUMED = {"AccessKeyId": "ASIAASSUMED", "SecretAccessKey": "secret of the role", "SessionToken": "token/of+the=role"}


@pytest.fixture(autouse=True)
def no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own AWS identity, if there is one, is not used."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")


def url_of(token: str) -> str:
    """Decode the signed URL, which has no padding."""
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def query_of(token: str) -> dict[str, str]:
    """Return the parameters of the signed URL."""
    return dict(parse_qsl(urlsplit(url_of(token)).query, strict_parsing=True))


def signature(url: str, secret: str) -> str:
    """Return the signature of a presigned URL, by the steps of AWS's Signature Version 4 for query strings."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    signed = {name: value for name, value in query.items() if name not in {"X-Amz-Signature", "User-Agent"}}
    encoded = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(signed.items()))
    request = f"GET\n{parts.path}\n{encoded}\nhost:{parts.netloc}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    return signed_by(secret, query["X-Amz-Credential"].partition("/")[2], query["X-Amz-Date"], request)


def header_signature(request: web.Request, body: bytes) -> str:
    """Return the signature that a POST of `body` with SECRET has, by the same steps for headers."""
    scope, names = re.search(r"Credential=[^/]+/(\S+), SignedHeaders=(\S+),", request.headers["Authorization"]).groups()
    headers = "".join(f"{name}:{request.headers[name]}\n" for name in names.split(";"))
    canonical = f"POST\n/\n\n{headers}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    return signed_by(SECRET, scope, request.headers["X-Amz-Date"], canonical)


def signed_by(secret: str, scope: str, date: str, request: str) -> str:
    """Return the signature of a canonical request."""
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


@pytest.mark.shows("F74")
async def test_a_token_is_a_url_that_the_access_key_has_signed() -> None:
    """It names the action kafka-cluster:Connect and the region, and OAUTHBEARER takes it (RFC 6750's b64token)."""
    token, lifetime_s = await request_msk_token(AwsIdentity(REGION, KEY_ID, SECRET))

    query = query_of(token)
    assert urlsplit(url_of(token)).netloc == "kafka.eu-central-1.amazonaws.com"
    assert (query["Action"], query["X-Amz-Expires"]) == ("kafka-cluster:Connect", "900")
    day = query["X-Amz-Date"][:8]
    assert query["X-Amz-Credential"] == f"{KEY_ID}/{day}/{REGION}/kafka-cluster/aws4_request"
    assert query["X-Amz-Signature"] == signature(url_of(token), SECRET)
    assert 0 < lifetime_s <= 900
    assert token.encode() in start_oauthbearer_client(token).reply


async def test_the_identity_of_the_process_signs_without_an_access_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's library finds it, here in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    token = (await request_msk_token(AwsIdentity(REGION))).value

    assert query_of(token)["X-Amz-Signature"] == signature(url_of(token), SECRET)


@pytest.mark.shows("F74")
async def test_the_identity_of_a_pod_signs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """EKS Pod Identity: an agent of the node gives credentials for the pod's token; a token does not outlive them."""
    asked: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization"))
        expires = (datetime.now(UTC) + timedelta(seconds=600)).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = {"AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, "Token": "of the pod", "Expiration": expires}
        return web.json_response(found)

    (tmp_path / "token").write_text("token of the service account")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    async with served("GET", "/v1/credentials", answer) as url:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/v1/credentials")

        token, lifetime_s = await request_msk_token(AwsIdentity(REGION))

    assert asked == ["token of the service account"]
    assert query_of(token)["X-Amz-Security-Token"] == "of the pod"
    assert query_of(token)["X-Amz-Signature"] == signature(url_of(token), SECRET)
    assert 500 < lifetime_s <= 600


@asynccontextmanager
async def served(method: str, path: str, answer: Callable[[web.Request], Awaitable[web.Response]]):
    """A service on loopback; yields its URL."""
    application = web.Application()
    application.router.add_route(method, path, answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


class FakeSts:
    """AWS STS on loopback: answers AssumeRole, or refuses it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, str]] = []
        self.is_refusing = False
        self.is_signed = False
        """The last request, with SECRET."""

    async def answer(self, request: web.Request) -> web.Response:
        """Answer in the XML of the query protocol."""
        self.is_signed = request.headers["Authorization"].endswith(
            f"Signature={header_signature(request, await request.read())}"
        )
        self.requests.append({name: str(value) for name, value in (await request.post()).items()})
        if self.is_refusing:
            error = "<Code>AccessDenied</Code><Message>not authorized to perform: sts:AssumeRole</Message>"
            return web.Response(status=403, text=f"<ErrorResponse><Error>{error}</Error></ErrorResponse>")
        found = "".join(f"<{name}>{value}</{name}>" for name, value in ASSUMED.items())
        found = f"<Credentials>{found}<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>"
        return web.Response(
            text=f"<AssumeRoleResponse><AssumeRoleResult>{found}</AssumeRoleResult></AssumeRoleResponse>"
        )


@pytest.fixture
async def sts(monkeypatch: pytest.MonkeyPatch):
    """The fake, which is asked instead of AWS."""
    fake = FakeSts()
    async with served("POST", "/", fake.answer) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        yield fake


@pytest.mark.shows("F74")
async def test_a_role_is_assumed_and_signs(sts: FakeSts) -> None:
    """The access key asks STS for the role; the role's session token is part of what is signed."""
    token = (await request_msk_token(AwsIdentity(REGION, KEY_ID, SECRET, ROLE))).value

    (asked,) = sts.requests
    assert sts.is_signed
    assert (asked["Action"], asked["RoleArn"], asked["RoleSessionName"]) == ("AssumeRole", ROLE, "steward")
    query = query_of(token)
    assert query["X-Amz-Credential"].startswith(f"{ASSUMED['AccessKeyId']}/")
    assert query["X-Amz-Security-Token"] == ASSUMED["SessionToken"]
    assert query["X-Amz-Signature"] == signature(url_of(token), ASSUMED["SecretAccessKey"])


async def test_a_role_that_is_refused_is_reported_without_a_secret(sts: FakeSts) -> None:
    """With AWS's message."""
    sts.is_refusing = True

    with pytest.raises(SaslFailed) as caught:
        await request_msk_token(AwsIdentity(REGION, KEY_ID, SECRET, ROLE))

    assert "AccessDenied" in caught.value.reason
    assert "sts:AssumeRole" in caught.value.reason
    assert SECRET not in caught.value.reason


async def test_a_process_without_an_identity_is_refused_with_what_to_do() -> None:
    """It has neither an access key nor a role of its pod or node."""
    with pytest.raises(SaslFailed) as caught:
        await asyncio.wait_for(request_msk_token(AwsIdentity(REGION)), 60)

    assert caught.value.reason == (
        "this process has no AWS identity: annotate its service account with a role (IRSA), or give an access key"
        " (AWS_AUTH_CREDENTIALS_PROVIDER_INVALID_ENVIRONMENT)"
    )
