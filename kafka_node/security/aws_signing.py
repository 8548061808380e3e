"""AWS credentials and signatures (Signature Version 4), by AWS's own library: the only module that imports it."""

import asyncio
import hashlib
import os
import time
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

import aiohttp
from awscrt.auth import (
    AwsCredentials,
    AwsCredentialsProvider,
    AwsSignatureType,
    AwsSigningConfig,
    aws_sign_request,
)
from awscrt.exceptions import AwsCrtError
from awscrt.http import HttpHeaders, HttpRequest

from kafka_node.http_body import ResponseTooLargeError, read_at_most
from kafka_node.security.tokens import MAX_ERROR_CHARACTERS
from kafka_wire.sasl.steps import SaslFailed

SESSION_NAME = "steward"
"""Of an assumed role: AWS CloudTrail shows it."""
STS_VERSION = "2011-06-15"
STS_ENDPOINT = "AWS_ENDPOINT_URL_STS"
"""Environment variable of all AWS SDKs: the URL of an STS endpoint of one's own, such as a VPC endpoint."""
FORM = "application/x-www-form-urlencoded; charset=utf-8"
MAX_RESPONSE_BYTES = 64 * 1024
"""Of AWS STS: credentials have some 2 KiB."""
OK = 200


@dataclass(frozen=True, slots=True)
class Credentials:
    """What signs, and for how long it can."""

    native: AwsCredentials = field(repr=False)
    lifetime_s: float


async def find_credentials(access_key_id: str | None, secret_access_key: str | None) -> Credentials:
    """Return those of an access key, or without one of this process. Raises SaslFailed."""
    if access_key_id is not None and secret_access_key is not None:
        return Credentials(AwsCredentials(access_key_id, secret_access_key), float("inf"))
    try:
        provider = AwsCredentialsProvider.new_default_chain()
        found = await asyncio.wrap_future(provider.get_credentials())
    except AwsCrtError as error:
        raise SaslFailed(
            "this process has no AWS identity: annotate its service account with a role (IRSA), or give an access key"
            f" ({error.name})"
        ) from None
    except OSError as error:
        raise SaslFailed(f"AWS provides no credentials: {error}") from None
    expires = found.expiration
    return Credentials(found, float("inf") if expires is None else expires.timestamp() - time.time())


async def presign(credentials: Credentials, region: str, service: str, host: str, path: str, lifetime_s: int) -> str:
    """Return path and query of a GET that the query's signature allows for `lifetime_s`. Raises SaslFailed."""
    request = HttpRequest("GET", path, HttpHeaders([("Host", host)]))
    await _sign(request, credentials, region, service, AwsSignatureType.HTTP_REQUEST_QUERY_PARAMS, lifetime_s)
    return str(request.path)


async def assume_role(credentials: Credentials, region: str, role_arn: str) -> Credentials:
    """Return the credentials of a role, from AWS STS in the region. Raises SaslFailed; its reason has no secret."""
    endpoint = os.environ.get(STS_ENDPOINT) or f"https://sts.{region}.amazonaws.com"
    body = urlencode(
        {"Action": "AssumeRole", "Version": STS_VERSION, "RoleArn": role_arn, "RoleSessionName": SESSION_NAME}
    ).encode()
    request = HttpRequest("POST", "/", HttpHeaders([("Host", urlsplit(endpoint).netloc), ("Content-Type", FORM)]))
    digest = hashlib.sha256(body).hexdigest()
    await _sign(request, credentials, region, "sts", AwsSignatureType.HTTP_REQUEST_HEADERS, digest=digest)
    try:
        async with (
            aiohttp.ClientSession(headers=dict(request.headers)) as session,
            session.post(endpoint, data=body, allow_redirects=False) as response,
        ):
            return _read(response.status, await read_at_most(response, MAX_RESPONSE_BYTES))
    except ResponseTooLargeError:
        raise SaslFailed(f"AWS STS returned more than {MAX_RESPONSE_BYTES} bytes") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SaslFailed(f"AWS STS cannot be used: {str(error)[:MAX_ERROR_CHARACTERS]}") from None


async def _sign(
    request: HttpRequest,
    credentials: Credentials,
    region: str,
    service: str,
    kind: AwsSignatureType,
    lifetime_s: int | None = None,
    digest: str | None = None,
) -> None:
    """Sign a request in place; `digest` is the SHA-256 of its body, None for no body."""
    native = credentials.native
    provider = AwsCredentialsProvider.new_static(native.access_key_id, native.secret_access_key, native.session_token)
    signing = AwsSigningConfig(
        signature_type=kind,
        credentials_provider=provider,
        region=region,
        service=service,
        signed_body_value=digest,
        expiration_in_seconds=lifetime_s,
    )
    try:
        await asyncio.wrap_future(aws_sign_request(request, signing))
    except AwsCrtError as error:
        raise SaslFailed(f"AWS's library does not sign: {error}") from None


def _read(status: int, content: bytes) -> Credentials:
    """Read a response of AssumeRole; an error has a code and a message."""
    try:
        # Over verified TLS and bounded; the parser refuses entities that grow.
        fields = {element.tag.rpartition("}")[2]: element.text or "" for element in ET.fromstring(content).iter()}  # noqa: S314
    except ET.ParseError:
        fields = {}
    if status != OK:
        message = " ".join(fields[name] for name in ("Code", "Message") if name in fields) or "no error code"
        raise SaslFailed(f"AWS STS returned status {status} to AssumeRole: {message[:MAX_ERROR_CHARACTERS]}")
    try:
        native = AwsCredentials(fields["AccessKeyId"], fields["SecretAccessKey"], fields["SessionToken"])
        lifetime_s = datetime.fromisoformat(fields["Expiration"]).timestamp() - time.time()
    except (KeyError, ValueError):
        raise SaslFailed("AWS STS returned no credentials to AssumeRole, or none with an expiration") from None
    return Credentials(native, lifetime_s)
