"""Signing of tokens for AWS MSK IAM, by AWS's libraries: the only module that imports them."""

import time

import boto3
from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import generate_auth_token_from_credentials_provider
from botocore.config import Config
from botocore.credentials import CredentialProvider, Credentials
from botocore.exceptions import BotoCoreError, ClientError

from kafka_node.security.tokens import MAX_ERROR_CHARACTERS, Token
from kafka_wire.sasl.steps import SaslFailed

SESSION_NAME = "steward"
"""Of an assumed role: AWS CloudTrail shows it."""
CONNECT_TIMEOUT_S, READ_TIMEOUT_S, ATTEMPTS = 3, 5, 2
"""Of a request to AWS STS: a login waits for it."""


class _Given(CredentialProvider):  # type: ignore[misc]  # botocore publishes no types
    """Credentials as the signer takes them."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__()
        self._credentials = credentials

    def load(self) -> Credentials:
        return self._credentials


def sign(region: str, access_key_id: str | None, secret_access_key: str | None, role_arn: str | None) -> Token:
    """Return a token; `AwsIdentity` describes the arguments. Raises SaslFailed; its reason has no secret."""
    try:
        session = boto3.Session(access_key_id, secret_access_key, region_name=region)
        credentials = session.get_credentials() if role_arn is None else _assume(session, role_arn)
        if credentials is None:
            raise SaslFailed(
                "this process has no AWS identity: annotate its service account with a role (IRSA), or give an access key"
            )
        token, expires_ms = generate_auth_token_from_credentials_provider(region, _Given(credentials))
    except (BotoCoreError, ClientError, ValueError, OSError) as error:
        raise SaslFailed(f"AWS provides no credentials: {str(error)[:MAX_ERROR_CHARACTERS]}") from None
    return Token(token, expires_ms / 1000 - time.time())


def _assume(session: boto3.Session, role_arn: str) -> Credentials:
    """Return the credentials of a role, from AWS STS in the session's region."""
    retries = {"total_max_attempts": ATTEMPTS}
    limits = Config(connect_timeout=CONNECT_TIMEOUT_S, read_timeout=READ_TIMEOUT_S, retries=retries)
    found = session.client("sts", config=limits).assume_role(RoleArn=role_arn, RoleSessionName=SESSION_NAME)
    given = found["Credentials"]
    return Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
