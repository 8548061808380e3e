"""Requests about delegation tokens in KRaft mode: creation (versions 1 to 3), renewal and expiration (1 and 2) (KIP-48, KIP-373).

A caller without authentication has no tokens: a token would let others act as it. Brokers describe tokens; Kafka's controllers list that
API and fail it. Source: ControllerApis, DelegationTokenControlManager.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from uuid import UUID

from controller_core.metadata import delegation_tokens
from controller_core.shell.kraft.port import MetadataController
from kafka_node.authorization import acl, guard
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure, uuids

NO_TIMESTAMP = -1
"""Timestamps of a refusal (DelegationTokenManager.ERROR_TIMESTAMP)."""


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return int(time.time() * 1000)


class TokenApis:
    """The handlers. `asking` returns the judge of a caller's operations, `ids` draws random ids without end."""

    def __init__(
        self,
        controller: MetadataController,
        settings: delegation_tokens.TokenSettings,
        asking: Callable[[RequestContext], guard.Ask],
        ids: Iterator[UUID],
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._controller = controller
        self._settings = settings
        self._asking = asking
        self._ids = ids
        self._clock = clock

    async def create(self, context: RequestContext, body: Body) -> Body:
        """Create a token for the caller, or for another principal that the caller may create tokens for."""
        owner, requester = _owner(context, body), context.principal
        if requester == acl.ANONYMOUS:
            return _not_created(context, body, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if owner != requester and not self._asking(context)(acl.Operation.CREATE_TOKENS, acl.ResourceType.USER, owner):
            return _not_created(context, body, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        renewers = tuple(f"{renewer['principal_type']}:{renewer['principal_name']}" for renewer in body["renewers"])
        wanted = delegation_tokens.NewToken(owner, requester, renewers, body["max_lifetime_ms"])
        created = await self._controller.write(
            partial(
                delegation_tokens.create_token,
                settings=self._settings,
                wanted=wanted,
                token_id=uuids.encode_uuid(next(self._ids)),
                now_ms=self._clock(),
            )
        )
        if isinstance(created, ErrorCode):
            return _not_created(context, body, created)
        return {
            "error_code": ErrorCode.NONE,
            **_principals(owner, requester),
            "issue_timestamp_ms": created.record.issue_timestamp,
            "expiry_timestamp_ms": created.record.expiration_timestamp,
            "max_timestamp_ms": created.record.max_timestamp,
            "token_id": created.record.token_id,
            "hmac": created.hmac,
        }

    async def renew(self, context: RequestContext, body: Body) -> Body:
        """Renew a token of the caller."""
        return await self._change(context, delegation_tokens.renew_token, body["hmac"], body["renew_period_ms"])

    async def expire(self, context: RequestContext, body: Body) -> Body:
        """Let a token of the caller expire."""
        return await self._change(context, delegation_tokens.expire_token, body["hmac"], body["expiry_time_period_ms"])

    async def _change(
        self, context: RequestContext, decide: Callable[..., object], hmac: bytes, period_ms: int
    ) -> Body:
        if context.principal == acl.ANONYMOUS:
            return _unchanged(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        reply = await self._controller.write(
            partial(
                decide,  # type: ignore[arg-type]
                settings=self._settings,
                requester=context.principal,
                token_mac=bytes(hmac),
                period_ms=period_ms,
                now_ms=self._clock(),
            )
        )
        if isinstance(reply, ErrorCode):
            return _unchanged(reply)
        return {"error_code": ErrorCode.NONE, "expiry_timestamp_ms": reply}


def create_refused(context: RequestContext, body: Body, failure: Failure) -> Body:
    """Answer a creation with an error."""
    return _not_created(context, body, failure.code)


def change_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer a renewal or expiration with an error."""
    return _unchanged(failure.code)


def _owner(context: RequestContext, body: Body) -> str:
    """Return the principal that a token is for: the caller, unless the request names another one."""
    name = body.get("owner_principal_name")
    return f"{body.get('owner_principal_type') or delegation_tokens.USER_TYPE}:{name}" if name else context.principal


def _principals(owner: str, requester: str) -> Body:
    owner_type, _, owner_name = owner.partition(":")
    requester_type, _, requester_name = requester.partition(":")
    return {
        "principal_type": owner_type,
        "principal_name": owner_name,
        "token_requester_principal_type": requester_type,
        "token_requester_principal_name": requester_name,
    }


def _not_created(context: RequestContext, body: Body, code: ErrorCode) -> Body:
    times = dict.fromkeys(["issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"], NO_TIMESTAMP)
    principals = _principals(_owner(context, body), context.principal)
    return {"error_code": code, **principals, **times, "token_id": "", "hmac": b""}


def _unchanged(code: ErrorCode) -> Body:
    return {"error_code": code, "expiry_timestamp_ms": NO_TIMESTAMP}
