"""Programs that run in pods of the cluster under test, in the product's own image; a ConfigMap carries them there."""
