"""Identity that signs tokens for an Amazon MSK cluster, and its region. Regions of China are not supported: MSK has another host name there."""

import re
from dataclasses import dataclass, field

REGION = re.compile(r"[a-z]{2,3}(-[a-z]+)+-[0-9]{1,2}")
CHINA = "cn-"


@dataclass(frozen=True, slots=True)
class AwsIdentity:
    """Who signs for a region: an access key, or without one the identity of this process as AWS's library finds it.

    That is the environment, a profile, the web identity of a service account (IRSA), EKS Pod Identity, or the node's role. With
    `role_arn` that identity assumes the role first.
    """

    region: str
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    role_arn: str | None = None


def check_region(region: str) -> str:
    """Return a region. Raises ValueError for what is none, and for a region of China."""
    if REGION.fullmatch(region) is None:
        raise ValueError(f"{region!r} is not an AWS region, such as eu-central-1")
    if region.startswith(CHINA):
        raise ValueError(f"{region} is a region of China, whose MSK clusters are not supported")
    return region
