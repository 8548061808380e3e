"""Tokens of AWS MSK IAM: OAUTHBEARER with a URL that is signed by an AWS identity.

`aws_signing` finds the identity and signs, by AWS's own library. A token is valid for every broker of a region, for 15 minutes at most.
"""

import asyncio
import base64

from kafka_node.security.aws_identity import AwsIdentity
from kafka_node.security.tokens import Token
from kafka_wire.sasl.steps import SaslFailed

MECHANISM = "AWS_MSK_IAM"
"""Name of the mechanism in the properties of Kafka's tools; the token is sent by OAUTHBEARER, which MSK accepts for all languages."""
LIFETIME_S = 900
"""Of a token: MSK accepts no longer one."""
TIMEOUT_S = 10.0
"""For a token, from the search for the identity to its signature: a login waits for it."""
CLIENT = "kafka-steward"
"""Of the URL's User-Agent, which MSK requires and does not check."""


async def request_msk_token(identity: AwsIdentity) -> Token:
    """Sign a token. Raises SaslFailed; its reason has no secret."""
    # AWS's library takes 11 MB, which only processes that log in at MSK have to hold.
    from kafka_node.security import aws_signing  # noqa: PLC0415

    host = f"kafka.{identity.region}.amazonaws.com"
    try:
        async with asyncio.timeout(TIMEOUT_S):
            credentials = await aws_signing.find_credentials(identity.access_key_id, identity.secret_access_key)
            if identity.role_arn is not None:
                credentials = await aws_signing.assume_role(credentials, identity.region, identity.role_arn)
            path = await aws_signing.presign(
                credentials, identity.region, "kafka-cluster", host, "/?Action=kafka-cluster%3AConnect", LIFETIME_S
            )
    except TimeoutError:
        raise SaslFailed(f"AWS provides no credentials within {TIMEOUT_S:.0f} s") from None
    url = f"https://{host}{path}&User-Agent={CLIENT}"
    token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return Token(token, min(LIFETIME_S, credentials.lifetime_s))
