"""Registration of a controller (KIP-919). Source: ClusterControlManager.registerController of Kafka 4.3."""

from controller_core.metadata.record_decision import RecordDecision
from kafka_metadata import metadata_versions, records
from kafka_metadata.image import MetadataImage
from kafka_wire import ErrorCode, Failure


def register_controller(image: MetadataImage, record: records.RegisterControllerRecord) -> RecordDecision:
    """Register a controller, or refuse one that does not support a feature of the cluster. The reply is a Failure or None."""
    level = image.metadata_version or metadata_versions.MINIMUM_VERSION
    if level < metadata_versions.CONTROLLERS_SINCE:
        message = f"The current MetadataVersion {metadata_versions.version_name(level)} does not support controller registrations."
        return RecordDecision((), Failure(ErrorCode.UNSUPPORTED_VERSION, message))
    supported = {feature.name: feature for feature in record.features}
    for name, finalized in image.features.items():
        feature = supported.get(name)
        lowest, highest = (feature.min_supported_version, feature.max_supported_version) if feature else (0, 0)
        if not lowest <= finalized.feature_level <= highest:
            message = (
                f"Unable to register because the controller does not support finalized version {finalized.feature_level} of "
                f"{name}. The controller wants a version between {lowest} and {highest}, inclusive."
            )
            return RecordDecision((), Failure(ErrorCode.UNSUPPORTED_VERSION, message))
    return RecordDecision((record,), None)
