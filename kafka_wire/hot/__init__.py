"""Hand-written encoders and decoders of the messages that carry records; the codec is their plain twin."""
