"""Leader election: acquires the Lease of one shard, renews it, and releases it at the end.

A process that loses its Lease restarts by exec and becomes a standby. This reliably ends its state, timers and calls in progress.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.decide.lease import (
    CALL_TIMEOUT_S,
    RETRY_PERIOD_S,
    RETRY_SOON_S,
    Lost,
    ObservedLease,
    Standby,
    decide_candidate,
    decide_holder,
    is_lease_valid,
    observe_lease,
    released,
)
from reconciler.kube.leases_port import Leases
from reconciler.kube.port import ConflictError, KubeError, NotFoundError
from reconciler.metrics import Metrics
from reconciler.resources.lease import Lease, micro_time

log = logging.getLogger(__name__)


class LeaseLostError(Exception):
    """The Lease is held by another process, or could not be renewed in time."""


class Leadership:
    """Leader election of one process for one of the Leases `names`, each the Lease of the shard of its index."""

    def __init__(
        self,
        leases: Leases,
        names: Sequence[str],
        identity: str,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        metrics: Metrics,
        create_after_s: float = 0.0,
    ) -> None:
        """`create_after_s`: time from now before which a missing Lease is not created, since another client is to create it."""
        self._leases = leases
        self._names = tuple(names)
        self._identity = identity
        self._now = now
        self._clock = clock
        self._create_from_s = clock() + create_after_s
        self._metrics = metrics
        self._lease: Lease | None = None
        self._renewed_s = 0.0
        self._seen: dict[str, ObservedLease] = {}
        self._keeping: asyncio.Task[None] | None = None
        self.shard: int | None = None
        """The index of the held Lease; None as a standby."""
        for name in self._names:
            metrics.lease_held.labels(name).set(0)

    @property
    def is_active(self) -> bool:
        """Whether a Lease is held, according to the monotonic clock."""
        return self._lease is not None and is_lease_valid(self._renewed_s, self._clock())

    @property
    def standby_reason(self) -> str | None:
        """Return why this process is standby: the holders that it waits for; None while it holds a Lease."""
        if self._lease is not None:
            return None
        held = {name: observed.lease.holder for name, observed in sorted(self._seen.items())}
        if not held:
            return "standby; no Lease has been read yet"
        return "standby; " + ", ".join(f"{name} is held by {holder or 'no process'}" for name, holder in held.items())

    async def acquire(self) -> int:
        """Wait until a Lease is acquired, then renew it in the background; return its index."""
        reported: str | None = None
        while True:
            delay_s = RETRY_PERIOD_S
            for index, name in enumerate(self._names):
                wait_s = await self._try_acquire(name)
                if wait_s is None:
                    return self._begin(index)
                delay_s = min(delay_s, wait_s)
            if reported != (reported := self.standby_reason):
                log.info("Waiting for Lease", extra={"leases": reported})
            await asyncio.sleep(delay_s)

    async def lost(self) -> None:
        """Wait forever; LeaseLostError when the acquired Lease is lost."""
        assert self._keeping is not None
        await asyncio.shield(self._keeping)

    async def release(self) -> None:
        """Release the Lease, if one is held, so that another process need not wait; call it after all work has stopped."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        if self._lease is None or not self.is_active:
            return
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._release_lease(self._lease)
            log.info("Released Lease", extra={"lease": self._lease.name})
        except (KubeError, TimeoutError) as error:
            log.warning("Failed to release Lease", extra={"lease": self._lease.name, "error": str(error)})
        self._remove_all()

    async def _release_lease(self, lease: Lease) -> None:
        try:
            await self._leases.replace(self._stamped(released(lease)))
        except ConflictError:  # a renewal that was just cancelled may have been carried out
            found = await self._leases.get(lease.name)
            if found.holder == self._identity:
                await self._leases.replace(self._stamped(released(found)))

    async def _try_acquire(self, name: str) -> float | None:
        """Read a Lease and acquire it if possible; return seconds until the next attempt, or None if it was acquired."""
        began_s = self._clock()
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                may_create = began_s >= self._create_from_s
                observed = await self._read(name)
                step = decide_candidate(name, observed, self._identity, self._clock(), may_create=may_create)
                if isinstance(step, Standby):
                    return step.seconds
                self._lease = await self._write(step.lease)
        except ConflictError:  # another process was faster
            return RETRY_PERIOD_S
        except (KubeError, TimeoutError) as error:
            log.warning("Failed to read Lease", extra={"lease": name, "error": str(error) or "no response"})
            return RETRY_PERIOD_S
        self._renewed_s = began_s
        return None

    async def _read(self, name: str) -> ObservedLease | None:
        try:
            lease = await self._leases.get(name)
        except NotFoundError:
            self._seen.pop(name, None)
            return None
        self._seen[name] = observe_lease(self._seen.get(name), lease, self._clock())
        return self._seen[name]

    def _begin(self, index: int) -> int:
        self.shard = index
        name = self._names[index]
        self._metrics.lease_held.labels(name).set(1)
        self._keeping = asyncio.create_task(self._keep(), name=f"lease {name}")
        log.info("Acquired Lease", extra={"lease": name, "identity": self._identity})
        return index

    async def _keep(self) -> None:
        delay_s = RETRY_PERIOD_S
        while True:
            await asyncio.sleep(delay_s)
            if not self.is_active:
                raise self._lost(f"the Lease was not renewed for {self._clock() - self._renewed_s:.1f} s")
            delay_s = RETRY_PERIOD_S if await self._renewed() else RETRY_SOON_S

    async def _renewed(self) -> bool:
        """Try to renew once; raises LeaseLostError if another process holds the Lease."""
        assert self._lease is not None
        began_s = self._clock()
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                self._lease = await self._renew(self._lease)
        except (KubeError, TimeoutError) as error:
            log.warning(
                "Failed to renew Lease", extra={"lease": self._lease.name, "error": str(error) or "no response"}
            )
            return False
        self._renewed_s = began_s
        return True

    async def _renew(self, lease: Lease) -> Lease:
        try:
            return await self._write(lease)
        except NotFoundError:
            found = None
        except ConflictError:  # changed by hand, or by a renewal of this process whose response was lost
            found = await self._leases.get(lease.name)
        step = decide_holder(lease.name, found, self._identity)
        if isinstance(step, Lost):
            raise self._lost(f"the Lease {lease.name} is held by {step.holder or 'no process'}")
        return await self._write(step.lease)

    async def _write(self, lease: Lease) -> Lease:
        stamped = self._stamped(lease)
        if not lease.acquired:
            stamped = replace(stamped, acquired=stamped.renewed)
        return await (self._leases.replace(stamped) if lease.resource_version else self._leases.create(stamped))

    def _stamped(self, lease: Lease) -> Lease:
        return replace(lease, renewed=micro_time(self._now()))

    def _lost(self, message: str) -> LeaseLostError:
        self._remove_all()
        return LeaseLostError(message)

    def _remove_all(self) -> None:
        if self._lease is not None:
            self._metrics.lease_held.labels(self._lease.name).set(0)
        self._lease = None
        self.shard = None
