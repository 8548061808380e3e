"""The log's files: segments, indexes, snapshots, checkpoints and the lock of a data folder. One thread owns a log."""
