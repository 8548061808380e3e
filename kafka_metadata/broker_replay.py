"""Registrations of brokers after a record. Source: BrokerRegistration and ClusterDelta of Kafka."""

from dataclasses import replace

from kafka_metadata.directory_ids import sorted_directories
from kafka_metadata.failures import MetadataError
from kafka_metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
)


def new_registration(record: RegisterBrokerRecord) -> RegisterBrokerRecord:
    """Return a broker of the image: of two listeners or features with one name the last, and sorted directories."""
    listeners = {point.name: point for point in record.end_points}
    features = {feature.name: feature for feature in record.features}
    return replace(
        record,
        end_points=tuple(listeners.values()),
        features=tuple(features.values()),
        log_dirs=sorted_directories(record.log_dirs),
    )


def changed_registration(
    broker: RegisterBrokerRecord | None,
    record: BrokerRegistrationChangeRecord | FenceBrokerRecord | UnfenceBrokerRecord,
) -> RegisterBrokerRecord:
    """Return a broker after a change. Raises MetadataError for another incarnation, or a broker that is not registered."""
    if isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord):
        broker_id, epoch = record.id, record.epoch
    else:
        broker_id, epoch = record.broker_id, record.broker_epoch
    if broker is None:
        raise MetadataError(f"broker {broker_id} is not registered")
    if broker.broker_epoch != epoch:
        raise MetadataError(f"broker {broker_id} has the epoch {broker.broker_epoch}, not {epoch}")
    if isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord):
        return replace(broker, fenced=isinstance(record, FenceBrokerRecord))
    if record.fenced not in {-1, 0, 1}:
        raise MetadataError(f"{record.fenced} is no change of fencing")
    if record.in_controlled_shutdown not in {0, 1}:
        raise MetadataError(f"{record.in_controlled_shutdown} is no change of the controlled shutdown")
    return replace(
        broker,
        fenced=record.fenced > 0 if record.fenced else broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown or bool(record.in_controlled_shutdown),
        log_dirs=sorted_directories(record.log_dirs) if record.log_dirs else broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if record.cordoned_log_dirs is None else record.cordoned_log_dirs,
    )
