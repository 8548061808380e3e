"""AlterUserScramCredentials and DescribeUserScramCredentials, version 0 (KIP-554).

The client salts the password, so the password itself is never sent. If one alteration of a user is refused, none of the user's
alterations is applied; other users are not affected. Only the controller alters credentials, as in Kafka. Any process that is connected
to the store describes them, as any broker does, without keys and salts.

Source: ZkAdminManager.alterUserScramCredentials, describeUserScramCredentials.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from controller_core.model.quota import DEFAULT, QuotaEntity
from controller_core.shell.admin.responses import NOT_CONTROLLER, Outcome, error_fields
from controller_core.shell.front.handler import RequestHandler, store_backed_handler
from controller_core.shell.store import Config, EntityConfigStore
from kafka_node.scram_requests import altered, altered_users, described_body, described_users, refused
from kafka_wire import ApiKey, Body, Failure


def scram_handlers(
    configs: EntityConfigStore | None, is_controller: Callable[[], Awaitable[bool]]
) -> Mapping[ApiKey, RequestHandler]:
    """Create the handlers; without a store they relay requests to a broker."""

    async def alter(store: EntityConfigStore, body: Body) -> Body:
        return await alter_user_scram_credentials(store, is_controller, body)

    return {
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: store_backed_handler(configs, "SCRAM credentials", alter),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: store_backed_handler(
            configs, "SCRAM credentials", describe_user_scram_credentials
        ),
    }


async def alter_user_scram_credentials(
    configs: EntityConfigStore, is_controller: Callable[[], Awaitable[bool]], body: Body
) -> Body:
    """Alter credentials, if this process is the controller."""
    users = altered_users(body)
    if not await is_controller():
        return altered_body(dict.fromkeys(sorted(users), NOT_CONTROLLER))
    outcomes: dict[str, Outcome] = dict(refused(body))
    for user in users:
        if user not in outcomes:
            outcomes[user] = await configs.change(QuotaEntity(user=user), partial(altered, user=user, body=body))
    return altered_body(outcomes)


def altered_body(outcomes: Mapping[str, Outcome]) -> Body:
    """Answer an alteration: the outcome of each user."""
    return {"results": [{"user": user, **error_fields(outcome)} for user, outcome in outcomes.items()]}


async def describe_user_scram_credentials(configs: EntityConfigStore, body: Body) -> Body:
    """Describe mechanisms and iterations of the named users; without names, of all users with credentials."""
    named = described_users(body)
    wanted = [name for name, times in Counter(named).items() if name and times == 1]
    configs_of = await _named(configs, wanted, all_users=not named)
    if isinstance(configs_of, Failure):
        return {**error_fields(configs_of), "results": []}
    return described_body(named, configs_of)


async def _named(configs: EntityConfigStore, users: list[str], *, all_users: bool) -> dict[str, Config] | Failure:
    """Read the configurations of the given users, or of all users ordered by name."""
    if not all_users:
        read = await configs.read([QuotaEntity(user=user) for user in users])
        return read if isinstance(read, Failure) else dict(zip(users, read.values(), strict=True))
    found = await configs.read_users()
    if isinstance(found, Failure):
        return found
    named = [(DEFAULT.value if user is DEFAULT else str(user), config) for user, config in found.items()]
    return dict(sorted(named, key=lambda pair: pair[0]))
