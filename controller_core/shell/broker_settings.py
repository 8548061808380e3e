"""Broker settings that the controller needs: read at the start of a term, then polled.

A controller that is a broker reads its own configuration. This one asks brokers (DescribeConfigs, `brokers.describe_configs`) throughout its
term: every `POLL_INTERVAL_S`, and soon after a broker registers or a notification names a broker's or all brokers' dynamic
configuration. A notification only makes the next poll come sooner. Brokers apply a dynamic change when they process the same
notification, at a time that is not reported, so an answer that follows a notification may still contain the old value.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from controller_core.model import Broker, settings
from controller_core.shell import active, startup_checks
from controller_core.shell.brokers.describe_configs import BrokerSettings, BrokerSettingsError, read_broker_settings
from controller_core.shell.controller import Controller
from controller_core.zookeeper_mode.broker_settings import combined_setting
from kafka_node.security.brokers import BrokerSecurity

log = logging.getLogger(__name__)

INQUIRY_RETRY_S = 2.0
"""Pause between attempts while no broker answers."""
POLL_INTERVAL_S = 5.0
"""Pause between polls: the maximum delay before a setting that a broker has applied is known here. A poll is one small request to one
broker."""
NOTIFIED_POLL_DELAY_S = 1.0
"""Pause between a notification and the poll that follows it: most brokers have applied the change after it."""


ReadClusterId = Callable[[], Awaitable[str]]
"""Reads the cluster's id from the store; empty while there is none."""


class BrokerSettingsReader:
    """Reads and polls the brokers' settings, and keeps the last known ones. To be created within a running event loop."""

    def __init__(
        self,
        controller_id: int,
        inter_broker_listener: str,
        security: BrokerSecurity,
        *,
        ignores_policies: bool = False,
    ) -> None:
        self._ignores_policies = ignores_policies
        self._controller_id = controller_id
        self._listener = inter_broker_listener
        self._security = security
        self.defaults: active.Defaults | None = None
        """The settings reported last; a new term starts with those of the former one."""
        self.refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with IdentityError or PolicyError once a broker's settings show that the controller must not serve the cluster."""
        self._changed = asyncio.Event()
        self._answered_last: int | None = None
        self._deletion: dict[int, bool] = {}
        """`delete.topic.enable` by broker, as reported since brokers were last asked all at once."""
        self._differed = False
        """Whether brokers reported different settings for `delete.topic.enable`."""

    def topic_defaults(self) -> Mapping[str, active.TopicDefault]:
        """Return the brokers' defaults for topics; empty until a broker has answered."""
        return {} if self.defaults is None else self.defaults.topic_defaults

    def poll_soon(self) -> None:
        """Poll soon: a broker has registered, or a notification names a changed configuration."""
        self._changed.set()

    async def follow(self, controller: Controller, cluster_id: ReadClusterId) -> None:
        """Read the brokers' settings, then poll them until cancelled; `cluster_id` reads the cluster's id, which the first broker creates."""
        self._changed.clear()
        await self._ask_all(controller, cluster_id, is_first=True)
        while True:
            if await self._is_notified_before_next_poll():
                await self._ask_all(controller, cluster_id, is_first=False)
            else:
                await self._poll(controller, cluster_id)

    async def _is_notified_before_next_poll(self) -> bool:
        try:
            async with asyncio.timeout(POLL_INTERVAL_S):
                await self._changed.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(NOTIFIED_POLL_DELAY_S)
        # Cleared after the pause: the poll that follows covers notifications that arrived during the pause.
        self._changed.clear()
        return True

    async def _ask_all(self, controller: Controller, cluster_id: ReadClusterId, *, is_first: bool) -> None:
        """Ask all brokers until one answers. The first answer counts, except for `delete.topic.enable`, where all answers count."""
        self._deletion.clear()
        while True:
            asked = [asyncio.create_task(self._inquire(broker)) for broker in controller.cluster.brokers.values()]
            try:
                for answer in asyncio.as_completed(asked):
                    if (known := await answer) is None:
                        continue
                    if not self._deletion:
                        await self._process_answer(controller, cluster_id, known, is_first=is_first)
                    self._deletion[known[0]] = known[1].defaults.delete_topic_enable
            finally:
                for task in asked:
                    task.cancel()
                await asyncio.gather(*asked, return_exceptions=True)
            if asked:
                self._process_topic_deletion(controller)
            if self._deletion:
                return
            await asyncio.sleep(INQUIRY_RETRY_S)

    async def _poll(self, controller: Controller, cluster_id: ReadClusterId) -> None:
        """Ask one broker after the other until one answers, and those whose `delete.topic.enable` is not known."""
        is_answered = False
        for broker in self._poll_order(controller.cluster.brokers):
            if is_answered and broker.id in self._deletion:
                continue
            if (known := await self._inquire(broker)) is None:
                continue
            if not is_answered:
                await self._process_answer(controller, cluster_id, known, is_first=False)
                is_answered = True
            self._deletion[broker.id] = known[1].defaults.delete_topic_enable
        self._process_topic_deletion(controller)

    def _poll_order(self, brokers: Mapping[int, Broker]) -> Sequence[Broker]:
        """Start with the broker that answered last: brokers apply a change one after the other, and the settings must not flap."""
        return sorted(brokers.values(), key=lambda broker: (broker.id != self._answered_last, broker.id))

    def _process_topic_deletion(self, controller: Controller) -> None:
        """Set whether topics may be deleted, from the answers of all live brokers."""
        live = controller.cluster.brokers
        self._deletion = {broker: enabled for broker, enabled in self._deletion.items() if broker in live}
        setting = combined_setting(self._deletion.values())
        differs = len(set(self._deletion.values())) > 1
        if differs and not self._differed:
            log.warning(
                "Brokers differ in delete.topic.enable; no topic is deleted until all brokers report true",
                extra={"disabled_on": sorted(broker for broker, enabled in self._deletion.items() if not enabled)},
            )
        self._differed = differs
        if (
            setting is settings.TopicDeletion.DISABLED
            and self.defaults is not None
            and self.defaults.delete_topic_enable
        ):
            self.defaults = replace(self.defaults, delete_topic_enable=False)
            controller.set_defaults(self.defaults)
        if setting is not controller.cluster.topic_deletion:
            controller.set_topic_deletion(setting)

    async def _inquire(self, broker: Broker) -> tuple[int, BrokerSettings] | None:
        """Ask one broker; None if it does not answer."""
        endpoint = broker.endpoint(self._listener)
        if endpoint is None:
            return None
        try:
            return broker.id, await read_broker_settings(broker.id, endpoint, self._security)
        except BrokerSettingsError as error:
            log.debug("Failed to read a broker's settings", extra={"broker": broker.id, "error": str(error)})
            return None

    async def _process_answer(
        self, controller: Controller, cluster_id: ReadClusterId, answer: tuple[int, BrokerSettings], *, is_first: bool
    ) -> None:
        """Pass settings to the controller if they differ from the former ones, or the term is new."""
        broker, known = answer
        self._answered_last = broker
        refused: Exception | None = startup_checks.over_reserved_max(
            self._controller_id, broker, known.reserved_broker_max_id
        )
        if not self._ignores_policies:
            refused = refused or startup_checks.unsupported_policies(broker, known.policies)
        if refused is not None:
            if not self.refused.done():
                self.refused.set_exception(refused)
            return
        # One broker that reports false is enough, also when this one reports true.
        is_enabled = known.defaults.delete_topic_enable and all(self._deletion.values())
        defaults = replace(known.defaults, delete_topic_enable=is_enabled)
        if is_first or defaults != self.defaults:
            self.defaults = defaults
            controller.set_defaults(defaults)
        controller.cluster_id = controller.cluster_id or await cluster_id()
