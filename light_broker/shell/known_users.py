"""ACLs and SCRAM credentials of the cluster, as the control plane delivers them."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from kafka_node.authorization.acls import Acls
from kafka_wire.sasl.scram_decoy import CredentialShape, shape_of
from kafka_wire.sasl.scram_keys import ScramCredential


class CurrentAcls:
    """The current ACLs. Implements KnownAcls of the authorizer."""

    def __init__(self) -> None:
        self.acls = Acls()
        self.loaded = asyncio.Event()

    def replace(self, acls: Acls) -> None:
        """Replace all ACLs."""
        self.acls = acls
        self.loaded.set()


class CurrentCredentials:
    """The current SCRAM credentials. Implements CredentialSource of the listeners."""

    def __init__(self) -> None:
        self._credentials: Mapping[str, Mapping[str, ScramCredential]] = {}
        self._shapes: dict[str, Counter[CredentialShape]] = {}

    def replace(self, credentials: Mapping[str, Mapping[str, ScramCredential]]) -> None:
        """Replace all credentials, by mechanism and user."""
        self._credentials = credentials
        self._shapes = {mechanism: Counter(map(shape_of, users.values())) for mechanism, users in credentials.items()}

    async def credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential; None: there is none."""
        return self._credentials.get(mechanism, {}).get(user)

    async def shapes(self, mechanism: str) -> Mapping[CredentialShape, int]:
        """Count the users' credentials by shape."""
        return self._shapes.get(mechanism, {})
