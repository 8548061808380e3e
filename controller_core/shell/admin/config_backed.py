"""Handlers for requests about entity configurations; without a store the requests are relayed to a broker."""

from collections.abc import Awaitable, Callable

from controller_core.shell.front.handler import RelayInstead, RequestHandler
from controller_core.shell.store import EntityConfigStore
from kafka_node.context import RequestContext
from kafka_wire.codec import Body


def config_backed_handler(
    configs: EntityConfigStore | None, what: str, answer: Callable[[EntityConfigStore, Body], Awaitable[Body]]
) -> RequestHandler:
    """Create a handler that answers from the store of entity configurations; None: it raises RelayInstead."""

    async def handle(_: RequestContext, body: Body) -> Body:
        if configs is None:
            raise RelayInstead(f"{what} are not stored by this process")
        return await answer(configs, body)

    return handle
