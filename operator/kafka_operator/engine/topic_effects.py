"""Effects of a batch of Topics on Kafka: one Admin request per kind, validated by the brokers first where required."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kafka_operator.admin.port import Refusals
from kafka_operator.decide.kafka.observed import Failure, Unavailable
from kafka_operator.decide.steps import AlterConfig, Apply, CreateTopic, DropTopic, GrowTopic, StopMoves
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.topic import Topic

ActionT = TypeVar("ActionT", CreateTopic, GrowTopic, AlterConfig, StopMoves, DropTopic)


@dataclass(slots=True)
class Effects:
    """Result: failures by the Kafka topic's name, or why the cluster became unreachable before the end."""

    failures: dict[str, Failure] = field(default_factory=dict)
    unavailable: Unavailable | None = None


class TopicEffects:
    """Carries out the steps of the Topics of one cluster."""

    def __init__(self, connections: ConnectionPool, ref: ClusterRef, may: Callable[[Topic], bool]) -> None:
        """`may` returns whether a Topic's namespace has the right; it is checked before each call, because calls take time."""
        self._connections = connections
        self._ref = ref
        self._may = may
        self._effects = Effects()

    async def carry_out(self, applies: Sequence[tuple[Topic, Apply]]) -> Effects:
        """Validate where required, then carry out what was not rejected; stop when the cluster becomes unreachable."""
        checked = [(topic, apply) for topic, apply in applies if apply.checked_first]
        if checked:
            await self._change(checked, validate_only=True)
        passed = [
            (topic, apply)
            for topic, apply in applies
            if not apply.asks_only and topic.name not in self._effects.failures
        ]
        await self._change(passed, validate_only=False)
        await self._stop_moves(self._actions(passed, StopMoves))
        drops = [action.name for action in self._actions(passed, DropTopic)]
        if drops:
            await self._call(lambda: self._connections.use(self._ref, lambda admin: admin.delete_topics(drops)))
        return self._effects

    async def _change(self, applies: Sequence[tuple[Topic, Apply]], *, validate_only: bool) -> None:
        use, ref = self._connections.use, self._ref
        creates = self._actions(applies, CreateTopic)
        if creates:
            await self._call(lambda: use(ref, lambda admin: admin.create_topics(creates, validate_only=validate_only)))
        grows = self._actions(applies, GrowTopic)
        if grows:
            await self._call(lambda: use(ref, lambda admin: admin.grow_topics(grows, validate_only=validate_only)))
        alters = self._actions(applies, AlterConfig)
        if alters:
            await self._call(lambda: use(ref, lambda admin: admin.alter_configs(alters, validate_only=validate_only)))

    def _actions(self, applies: Sequence[tuple[Topic, Apply]], kind: type[ActionT]) -> list[ActionT]:
        """Return the actions of one kind, of the Topics that have the right at present."""
        return [
            action
            for topic, apply in applies
            if self._may(topic)
            for action in apply.actions
            if isinstance(action, kind)
        ]

    async def _stop_moves(self, stops: Sequence[StopMoves]) -> None:
        """Cancel moves; one that cannot be cancelled only makes the deletion wait for its end."""
        targets: Mapping[Partition, None] = {
            Partition(stop.name, index): None for stop in stops for index in stop.partitions
        }

        async def stop() -> Refusals:
            await self._connections.use(self._ref, lambda admin: admin.alter_reassignments(targets))
            return {}

        if targets:
            await self._call(stop)

    async def _call(self, call: Callable[[], Awaitable[Refusals]]) -> None:
        if self._effects.unavailable is not None:
            return
        try:
            self._effects.failures.update(await call())
        except ClusterUnavailableError as error:
            self._effects.unavailable = error.unavailable
