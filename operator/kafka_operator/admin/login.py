"""SASL credentials of a connection: a user and its password, a token, or a source of tokens."""

from __future__ import annotations

from kafka_node.security.aws_identity import AwsIdentity
from kafka_node.security.msk_iam import request_msk_token
from kafka_node.security.tokens import KeptToken, TokenEndpoint, request_token
from kafka_operator.admin.port import BadCredentialsError
from kafka_operator.admin.tls import make_context
from kafka_operator.resources.security import ClientCredentials, Login, Security
from kafka_wire.net.client import BearerCredentials, Credentials, SaslCredentials


def make_credentials(security: Security) -> Credentials | None:
    """Return the credentials, None without SASL; BadCredentialsError where the endpoint's certificate authorities cannot be used."""
    login = security.login
    if login is None:
        return None
    if isinstance(login, Login):
        return SaslCredentials(login.mechanism, login.username, login.password)
    if isinstance(login, ClientCredentials):
        return _requested(login)
    if isinstance(login, AwsIdentity):
        return BearerCredentials(KeptToken(lambda: request_msk_token(login)))
    token = login.token

    async def given() -> str:
        return token

    return BearerCredentials(given)


def _requested(login: ClientCredentials) -> BearerCredentials:
    try:
        context = make_context(Security(tls=True, ca=login.ca))
    except BadCredentialsError as error:
        raise BadCredentialsError("endpoint_ca", str(error)) from None
    assert context is not None, "TLS is on"
    endpoint = TokenEndpoint(login.url, login.client_id, login.client_secret, login.scope, context)
    return BearerCredentials(KeptToken(lambda: request_token(endpoint)))
