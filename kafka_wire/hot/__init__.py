"""Encoders and decoders of messages that carry records, faster than the codec and without a copy of records. The codec is their twin."""
