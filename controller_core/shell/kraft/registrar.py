"""Registration of this controller with the active one: its endpoints and features (KIP-919). Source: ControllerRegistrationManager of Kafka.

It is repeated until the committed metadata has it. A cluster below metadata.version 3.7-IV0 has no such registrations.
"""

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from controller_core.metadata.controller_registration import register_controller
from controller_core.quorum.voters import endpoint_of
from controller_core.shell.active import OverloadedError, TermEndedError
from controller_core.shell.kraft import broker_apis, features
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.quorum.driver import Driver
from kafka_metadata import metadata_versions, records
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.codec import CodecError
from kafka_wire.net.failures import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.node import Node, NodeSettings

log = logging.getLogger(__name__)

CHECK_S = 1.0
"""Between two polls of the metadata: nothing waits for a registration but upgrades of features."""

CLIENT_ID = "steward-controller-registration"


class Registrar:
    """`run` registers this process, and again after each new registration of another process with its id."""

    def __init__(self, driver: Driver, controller: KRaftController, listener: str, settings: NodeSettings) -> None:
        """Choose an incarnation; `listener` and `settings` are those of requests to other controllers."""
        self.incarnation_id: UUID = uuid4()
        self._driver = driver
        self._controller = controller
        self._listener = listener
        self._settings = replace(settings, client_id=CLIENT_ID)

    async def run(self) -> None:
        """Register, and stay registered."""
        while True:
            image = self._controller.committed_image
            known = image.controllers.get(self._controller.identity.node_id)
            is_known = known is not None and known.incarnation_id == self.incarnation_id
            if (image.metadata_version or 0) >= metadata_versions.CONTROLLERS_SINCE and not is_known:
                await self._register()
            await asyncio.sleep(CHECK_S)

    async def _register(self) -> None:
        try:
            error = await (self._register_here() if self._controller.is_active else self._ask_the_active())
        except (TermEndedError, OverloadedError, ConnectionFailed, UnsupportedVersion, CodecError) as failure:
            error = str(failure)
        if error is not None:
            log.info("Controller is not registered yet; trying again", extra={"error": error})

    async def _register_here(self) -> str | None:
        record = broker_apis.controller_record(self._body())
        failure = await self._controller.write(partial(register_controller, record=record))
        return None if failure is None else str(failure.message)

    async def _ask_the_active(self) -> str | None:
        node = self._driver.node
        endpoint = None if node is None else endpoint_of(node.leader_endpoints, self._listener)
        if endpoint is None:
            return "the quorum has no leader with a known address"
        client = Node(endpoint.host, endpoint.port, self._settings)
        try:
            answer = await client.call(ApiKey.CONTROLLER_REGISTRATION, self._body())
        finally:
            await client.close()
        return None if answer["error_code"] == ErrorCode.NONE else ErrorCode(answer["error_code"]).name

    def _body(self) -> dict[str, Any]:
        return {
            "controller_id": self._controller.identity.node_id,
            "incarnation_id": self.incarnation_id,
            "zk_migration_ready": False,
            "listeners": [
                {
                    "name": endpoint.listener,
                    "host": endpoint.host,
                    "port": endpoint.port,
                    "security_protocol": records.SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
                }
                for endpoint in self._controller.advertised()
            ],
            "features": [
                {"name": name, "min_supported_version": lowest, "max_supported_version": highest}
                for name, (lowest, highest) in features.SUPPORTED.items()
            ],
        }
