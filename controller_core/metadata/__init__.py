"""Pure: what the controller writes to the metadata log, beyond single records (`kafka_metadata`)."""
