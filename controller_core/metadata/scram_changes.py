"""Changes of SCRAM credentials as records (KIP-554). Source: ScramControlManager of Kafka 4.3.1.

The rules are those of ZooKeeper mode (`kafka_node.scram_requests`): unlike Kafka's controller, a request may alter both mechanisms of
one user.
"""

from controller_core.metadata.record_decision import RecordDecision
from kafka_metadata import metadata_versions, security_records
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import MetadataRecord, RemoveUserScramCredentialRecord
from kafka_node.outcomes import Outcome
from kafka_node.scram_requests import MECHANISM_OF, Config, altered, altered_users, refused
from kafka_wire import Body, ErrorCode, Failure
from kafka_wire.sasl.scram_keys import decode_credential

SCRAM_UNSUPPORTED = Failure(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")


def alter_user_scram_credentials(image: MetadataImage, body: Body) -> RecordDecision:
    """Alter credentials. The reply has the outcome of each user; a user with a refused alteration keeps all credentials."""
    users = altered_users(body)
    if (image.metadata_version or 0) < metadata_versions.SCRAM_SINCE:
        return RecordDecision((), dict.fromkeys(users, SCRAM_UNSUPPORTED))
    outcomes: dict[str, Outcome] = dict(refused(body))
    records: list[MetadataRecord] = []
    for user in users:
        if user in outcomes:
            continue
        before = security_records.scram_config_of(image, user)
        after = altered(before, user=user, body=body)
        outcomes[user] = after if isinstance(after, Failure) else None
        if not isinstance(after, Failure):
            records += _changes(user, before, after)
    return RecordDecision(tuple(records), outcomes)


def _changes(user: str, before: Config, after: Config) -> list[MetadataRecord]:
    removed = [
        mechanism for mechanism in MECHANISM_OF.values() if mechanism.name in before and mechanism.name not in after
    ]
    written = [
        mechanism
        for mechanism in MECHANISM_OF.values()
        if after.get(mechanism.name, "") not in {"", before.get(mechanism.name)}
    ]
    return [
        *(RemoveUserScramCredentialRecord(user, mechanism.type_id) for mechanism in removed),
        *(
            security_records.scram_record(user, mechanism, decode_credential(after[mechanism.name]))
            for mechanism in written
        ),
    ]
