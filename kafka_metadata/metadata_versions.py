"""Levels of metadata.version, and the versions of records at each level.

Source: MetadataVersion of Kafka 4.3.1, and the versions that its control managers write.
"""

from kafka_metadata.failures import MetadataError

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"

_RELEASES = {
    "3.3": (7, (3,)),
    "3.4": (8, (0,)),
    "3.5": (9, (0, 1, 2)),
    "3.6": (12, (0, 1, 2)),
    "3.7": (15, (0, 1, 2, 3, 4)),
    "3.8": (20, (0,)),
    "3.9": (21, (0,)),
    "4.0": (22, (0, 1, 2, 3)),
    "4.1": (26, (0, 1)),
    "4.2": (28, (0, 1)),
    "4.3": (30, (0,)),
    "4.4": (31, (0,)),
}
"""By release: the level of its first metadata version, and the numbers of all."""

VERSION_NAMES = {
    first + position: f"{release}-IV{number}"
    for release, (first, numbers) in _RELEASES.items()
    for position, number in enumerate(numbers)
}
"""Names of metadata versions by level."""

MINIMUM_VERSION = 7
LATEST_PRODUCTION = 30
"""The last level that Kafka 4.3.1 has released; higher ones may change."""
LATEST_UNSTABLE = 31

MIGRATION_SINCE = 8
SCRAM_SINCE = 11
TRANSACTIONS_SINCE = 13
TOKENS_SINCE = 14
CONTROLLERS_SINCE = 15
DIRECTORIES_SINCE = 17
ELR_SINCE = 23
CORDONED_SINCE = 30

_CHANGED_METADATA = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Versions that changed the format or the meaning of records (MetadataVersion.didMetadataChange)."""

SINCE = {
    "ZkMigrationStateRecord": MIGRATION_SINCE,
    "UserScramCredentialRecord": SCRAM_SINCE,
    "RemoveUserScramCredentialRecord": SCRAM_SINCE,
    "BeginTransactionRecord": TRANSACTIONS_SINCE,
    "EndTransactionRecord": TRANSACTIONS_SINCE,
    "AbortTransactionRecord": TRANSACTIONS_SINCE,
    "DelegationTokenRecord": TOKENS_SINCE,
    "RemoveDelegationTokenRecord": TOKENS_SINCE,
    "RegisterControllerRecord": CONTROLLERS_SINCE,
    "ClearElrRecord": ELR_SINCE,
}
"""The first metadata version of each record that not all have."""

_VERSIONS_SINCE = {
    "RegisterBrokerRecord": {1: MINIMUM_VERSION, 2: MIGRATION_SINCE, 3: DIRECTORIES_SINCE, 4: CORDONED_SINCE},
    "BrokerRegistrationChangeRecord": {1: MINIMUM_VERSION, 2: DIRECTORIES_SINCE, 3: CORDONED_SINCE},
    "PartitionRecord": {0: MINIMUM_VERSION, 1: DIRECTORIES_SINCE, 2: ELR_SINCE},
    "PartitionChangeRecord": {0: MINIMUM_VERSION, 1: DIRECTORIES_SINCE, 2: ELR_SINCE},
}
"""The first metadata version of each version of a record; the versions of all others are 0."""


def record_version(record: str, metadata_version: int) -> int | None:
    """Return the highest version of a record that a metadata version allows; None if it does not have the record.

    >>> record_version("PartitionRecord", 22), record_version("PartitionRecord", 23), record_version("ClearElrRecord", 22)
    (1, 2, None)
    """
    if metadata_version < SINCE.get(record, MINIMUM_VERSION):
        return None
    found = _VERSIONS_SINCE.get(record, {0: MINIMUM_VERSION})
    return max(version for version, since in found.items() if since <= metadata_version)


def has_other_records(lower: int, higher: int) -> bool:
    """Return whether records of the higher metadata version may be lost at the lower one (MetadataVersion.checkIfMetadataChanged).

    >>> has_other_records(27, 29), has_other_records(29, 30)
    (False, True)
    """
    return any(level in _CHANGED_METADATA for level in range(lower + 1, higher + 1))


def version_name(level: int) -> str:
    """Return a metadata version as Kafka's tools print it, or its level if it is unknown.

    >>> version_name(30), version_name(99)
    ('4.3-IV0', '99')
    """
    return VERSION_NAMES.get(level, str(level))


def check_level(level: int) -> None:
    """Raise MetadataError for a metadata version whose records this program does not know."""
    if not MINIMUM_VERSION <= level <= LATEST_PRODUCTION:
        lowest, highest = version_name(MINIMUM_VERSION), version_name(LATEST_PRODUCTION)
        raise MetadataError(
            f"metadata.version {level} is unknown ({lowest} to {highest}, which are {MINIMUM_VERSION} to {LATEST_PRODUCTION}, are "
            "known); run a version of Steward that has it"
        )
