"""The part of a controller mutation quota that one request may use (KIP-599)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MutationAllowance:
    """Tokens of a bucket when a request is decided; one token is one partition that is created or deleted."""

    tokens: float
    """Below 0: the quota is used up."""
    is_strict: bool
    """Whether mutations are refused while the quota is used up; if not, they are only counted."""
