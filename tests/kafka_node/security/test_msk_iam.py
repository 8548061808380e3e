"""Tokens of AWS MSK IAM, against an independent implementation of Signature Version 4, and a fake AWS STS. MSK itself is not asked."""

import asyncio
import base64
import hashlib
import hmac
import sys
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from aiohttp import web

from kafka_node.security.msk_iam import AwsIdentity, request_msk_token
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
    scope = query["X-Amz-Credential"].partition("/")[2]
    text = f"AWS4-HMAC-SHA256\n{query['X-Amz-Date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
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
    """AWS's libraries find it, here in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    token = (await request_msk_token(AwsIdentity(REGION))).value

    assert query_of(token)["X-Amz-Signature"] == signature(url_of(token), SECRET)


class FakeSts:
    """AWS STS on loopback: answers AssumeRole, or refuses it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, str]] = []
        self.is_refusing = False

    async def answer(self, request: web.Request) -> web.Response:
        """Answer in the XML of the query protocol."""
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
    """The fake, which AWS's libraries ask instead of AWS."""
    fake = FakeSts()
    application = web.Application()
    application.router.add_post("/", fake.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{runner.addresses[0][1]}")
    yield fake
    await runner.cleanup()


@pytest.mark.shows("F74")
async def test_a_role_is_assumed_and_signs(sts: FakeSts) -> None:
    """The access key asks STS for the role; the role's session token is part of what is signed."""
    token = (await request_msk_token(AwsIdentity(REGION, KEY_ID, SECRET, ROLE))).value

    (asked,) = sts.requests
    assert (asked["Action"], asked["RoleArn"], asked["RoleSessionName"]) == ("AssumeRole", ROLE, "steward")
    query = query_of(token)
    assert query["X-Amz-Credential"].startswith(f"{ASSUMED['AccessKeyId']}/")
    assert query["X-Amz-Security-Token"] == ASSUMED["SessionToken"]
    assert query["X-Amz-Signature"] == signature(url_of(token), ASSUMED["SecretAccessKey"])


async def test_a_role_that_is_refused_is_reported_without_a_secret(sts: FakeSts) -> None:
    """With AWS's own words."""
    sts.is_refusing = True

    with pytest.raises(SaslFailed) as caught:
        await request_msk_token(AwsIdentity(REGION, KEY_ID, SECRET, ROLE))

    assert "AccessDenied" in caught.value.reason
    assert "sts:AssumeRole" in caught.value.reason
    assert SECRET not in caught.value.reason


async def test_a_process_without_an_identity_is_told_what_to_do() -> None:
    """It has neither an access key nor a role of its pod or node."""
    with pytest.raises(SaslFailed) as caught:
        await asyncio.wait_for(request_msk_token(AwsIdentity(REGION)), 60)

    assert caught.value.reason == (
        "this process has no AWS identity: annotate its service account with a role (IRSA), or give an access key"
    )


async def test_a_missing_signer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional."""
    monkeypatch.delitem(sys.modules, "kafka_node.security.msk_signing", raising=False)
    monkeypatch.delattr("kafka_node.security.msk_signing", raising=False)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)

    with pytest.raises(SaslFailed, match=r"AWS's signer, which is not installed: pip install 'kafka-steward\[aws\]'"):
        await request_msk_token(AwsIdentity(REGION, KEY_ID, SECRET))
