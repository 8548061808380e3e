"""The effects of a batch of Topics on Kafka: one Admin call of each sort for all of them, checked by the brokers before where it counts.

Leaves out what to do (decide), and what is told of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_operator.admin.port import Refusals
from kafka_operator.decide.observed import Away, Failure
from kafka_operator.decide.steps import AlterConfig, Apply, CreateTopic, DropTopic, GrowTopic, StopMoves
from kafka_operator.engine.links import AwayError, Links
from kafka_operator.names import ClusterRef
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.topic import Topic


@dataclass(slots=True)
class Effects:
    """What came of it: failures by the Kafka topic's name, or why the cluster was away before the end."""

    failures: dict[str, Failure] = field(default_factory=dict)
    away: Away | None = None


class TopicEffects:
    """Carries out what was decided for the Topics of one cluster."""

    def __init__(self, links: Links, ref: ClusterRef) -> None:
        self._links = links
        self._ref = ref
        self._effects = Effects()

    async def carry_out(self, applies: Sequence[tuple[Topic, Apply]]) -> Effects:
        """Check what is to be checked, then do what was not refused; the first absence of the cluster ends it."""
        checked = [apply for _, apply in applies if apply.checked_first]
        if checked:
            await self._change(checked, validate_only=True)
        passed = [apply for topic, apply in applies if not apply.asks_only and topic.name not in self._effects.failures]
        await self._change(passed, validate_only=False)
        await self._stop_moves(
            [action for apply in passed for action in apply.actions if isinstance(action, StopMoves)]
        )
        drops = [action.name for apply in passed for action in apply.actions if isinstance(action, DropTopic)]
        if drops:
            await self._call(lambda: self._links.use(self._ref, lambda admin: admin.delete_topics(drops)))
        return self._effects

    async def _change(self, applies: Sequence[Apply], *, validate_only: bool) -> None:
        actions = [action for apply in applies for action in apply.actions]
        creates = [action for action in actions if isinstance(action, CreateTopic)]
        grows = [action for action in actions if isinstance(action, GrowTopic)]
        alters = [action for action in actions if isinstance(action, AlterConfig)]
        use, ref = self._links.use, self._ref
        if creates:
            await self._call(lambda: use(ref, lambda admin: admin.create_topics(creates, validate_only=validate_only)))
        if grows:
            await self._call(lambda: use(ref, lambda admin: admin.grow_topics(grows, validate_only=validate_only)))
        if alters:
            await self._call(lambda: use(ref, lambda admin: admin.alter_configs(alters, validate_only=validate_only)))

    async def _stop_moves(self, stops: Sequence[StopMoves]) -> None:
        """Cancel moves; one that cannot be cancelled only makes the deletion wait for its end."""
        targets: Mapping[Partition, None] = {
            Partition(stop.name, index): None for stop in stops for index in stop.partitions
        }

        async def stop() -> Refusals:
            await self._links.use(self._ref, lambda admin: admin.alter_reassignments(targets))
            return {}

        if targets:
            await self._call(stop)

    async def _call(self, call: Callable[[], Awaitable[Refusals]]) -> None:
        if self._effects.away is not None:
            return
        try:
            self._effects.failures.update(await call())
        except AwayError as error:
            self._effects.away = error.away
