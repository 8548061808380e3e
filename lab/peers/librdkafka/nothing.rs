// Cargo needs a library; this package only names the crate that has librdkafka's sources.
