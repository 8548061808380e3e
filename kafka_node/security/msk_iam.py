"""Tokens of AWS MSK IAM: OAUTHBEARER with a URL that is signed by an AWS identity.

`msk_signing` signs with AWS's own libraries (the extra `aws`). A token is valid for every broker of a region, for 15 minutes.
"""

import asyncio
from dataclasses import dataclass, field

from kafka_node.security.tokens import Token
from kafka_wire.sasl.steps import SaslFailed

MECHANISM = "AWS_MSK_IAM"
"""Name of the mechanism in the properties of Kafka's tools; the token is sent by OAUTHBEARER, which MSK accepts for all languages."""


@dataclass(frozen=True, slots=True)
class AwsIdentity:
    """Who signs for a region: an access key, or without one the identity of this process as AWS's libraries find it.

    That is the environment, the web identity of a service account (IRSA), EKS Pod Identity, a profile, or the node's role. With
    `role_arn` that identity assumes the role first.
    """

    region: str
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    role_arn: str | None = None


async def request_msk_token(identity: AwsIdentity) -> Token:
    """Sign a token, in a thread: AWS's libraries block. Raises SaslFailed; its reason has no secret."""
    return await asyncio.to_thread(_sign, identity)


def _sign(identity: AwsIdentity) -> Token:
    try:
        # The extra is optional, and AWS's libraries take a third of a second to import.
        from kafka_node.security import msk_signing  # noqa: PLC0415
    except ImportError:
        raise SaslFailed(
            "AWS MSK IAM needs AWS's signer, which is not installed: pip install 'kafka-steward[aws]'"
        ) from None
    return msk_signing.sign(identity.region, identity.access_key_id, identity.secret_access_key, identity.role_arn)
