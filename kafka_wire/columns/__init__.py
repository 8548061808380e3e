"""Messages about many partitions, encoded from and decoded into numpy columns: alongside the codec, for the largest ones."""
