"""Handlers of requests about what is kept in `/config`: a broker answers where it is not kept here. Leaves out the answers."""

from collections.abc import Awaitable, Callable

from controller_core.shell.front.handler import RelayInstead, RequestHandler
from controller_core.shell.store import EntityConfigStore
from kafka_node.context import RequestContext
from kafka_wire.codec import Body


def where_kept(
    configs: EntityConfigStore | None, what: str, answer: Callable[[EntityConfigStore, Body], Awaitable[Body]]
) -> RequestHandler:
    """Make a handler that answers by these configurations; None: with nowhere to read and write it raises RelayInstead."""

    async def handle(_: RequestContext, body: Body) -> Body:
        if configs is None:
            raise RelayInstead(f"{what} are not kept here")
        return await answer(configs, body)

    return handle
