"""The engine of an operator: work queue, loop of batches, retries, watch lag, and the Lease of its process."""
