"""What a process learns of its brokers' settings: whichever broker answers first tells them.

Brokers are asked when a tenure begins, and again when they may have others: one has started anew, perhaps with another file, or
a notice tells that somebody changed a broker's or all brokers' dynamic configuration.

Leaves out how a broker is asked (brokers.inquiry) and what the settings are for (active).
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace

from controller_core.cluster.deletion_setting import combined_setting
from controller_core.model.broker import Broker
from controller_core.model.changes import TopicDeletion
from controller_core.shell.active import Defaults, TopicDefault
from controller_core.shell.brokers.inquiry import BrokerSettings, InquiryError, inquire
from controller_core.shell.controller import Controller
from controller_core.shell.identity import over_reserved_max
from controller_core.shell.security.brokers import BrokerSecurity
from controller_core.shell.zookeeper.tenure import read_cluster_id
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

INQUIRY_RETRY_S = 2.0
"""Pause before brokers are asked again for their settings, as long as none of them answers."""
ASKED_AGAIN_AFTER_S = (1.0, 9.0)
"""Pauses before brokers are asked again for what may have changed. They hear of it by the same notice as we, and nobody tells
whether they have: by the first look most will have, by the second even one that was frozen for a session."""


class Learning:
    """What brokers told last; made within a running loop."""

    def __init__(self, controller_id: int, inter_broker_listener: str, security: BrokerSecurity) -> None:
        self._controller_id = controller_id
        self._listener = inter_broker_listener
        self._security = security
        self.defaults: Defaults | None = None
        """What a broker told last; in force until one tells in the present tenure."""
        self.refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with IdentityError once a broker tells that the controller's id cannot be."""
        self._changed = asyncio.Event()
        self._differed = False
        """Whether brokers reported different settings for `delete.topic.enable` when they were asked last."""

    def topic_defaults(self) -> Mapping[str, TopicDefault]:
        """Tell what brokers set for all topics, as far as one has told."""
        return {} if self.defaults is None else self.defaults.topic_defaults

    def ask_again(self) -> None:
        """Note that brokers may have other settings by now."""
        self._changed.set()

    async def learn(self, controller: Controller, session: ZooKeeperSession) -> None:
        """Ask brokers for the settings that a controller needs, and again whenever these may have changed."""
        self._changed.clear()
        await self._ask(controller, session)
        while True:
            await self._changed.wait()
            self._changed.clear()
            for pause_s in ASKED_AGAIN_AFTER_S:
                await asyncio.sleep(pause_s)
                await self._ask(controller, session)

    async def _ask(self, controller: Controller, session: ZooKeeperSession) -> None:
        """Ask all brokers until one answers. Its settings count, except for `delete.topic.enable`: for that, all answers do."""
        while True:
            asked = [asyncio.create_task(self._inquire(broker)) for broker in controller.cluster.brokers.values()]
            deletion: dict[int, bool] = {}
            try:
                for answer in asyncio.as_completed(asked):
                    if (told := await answer) is None:
                        continue
                    if not deletion:
                        await self._take_in(controller, session, *told)
                    deletion[told[0]] = told[1].defaults.delete_topic_enable
            finally:
                for task in asked:
                    task.cancel()
                await asyncio.gather(*asked, return_exceptions=True)
            if asked:
                self._take_in_deletion(controller, deletion)
            if deletion:
                return
            await asyncio.sleep(INQUIRY_RETRY_S)

    def _take_in_deletion(self, controller: Controller, reported: Mapping[int, bool]) -> None:
        """Pass on whether topics may be deleted, by the reports of all brokers that answered."""
        setting = combined_setting(reported.values())
        differs = len(set(reported.values())) > 1
        if differs and not self._differed:
            log.warning(
                "Brokers differ in delete.topic.enable; no topic is deleted until all of them report true",
                extra={"disabled_on": sorted(broker for broker, enabled in reported.items() if not enabled)},
            )
        self._differed = differs
        if setting is TopicDeletion.DISABLED and self.defaults is not None and self.defaults.delete_topic_enable:
            self.defaults = replace(self.defaults, delete_topic_enable=False)
            controller.learn(self.defaults)
        controller.learn_topic_deletion(setting)

    async def _inquire(self, broker: Broker) -> tuple[int, BrokerSettings] | None:
        """Ask one broker; None: it did not tell."""
        endpoint = broker.endpoint(self._listener)
        if endpoint is None:
            return None
        try:
            return broker.id, await inquire(broker.id, endpoint, self._security)
        except InquiryError as error:
            log.debug("a broker's settings cannot be read yet", extra={"broker": broker.id, "why": str(error)})
            return None

    async def _take_in(
        self, controller: Controller, session: ZooKeeperSession, broker: int, known: BrokerSettings
    ) -> None:
        refused = over_reserved_max(self._controller_id, broker, known.reserved_broker_max_id)
        if refused is not None:
            if not self.refused.done():
                self.refused.set_exception(refused)
            return
        self.defaults = known.defaults
        controller.learn(known.defaults)
        controller.cluster_id = controller.cluster_id or await read_cluster_id(session)
