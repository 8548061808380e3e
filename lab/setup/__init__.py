"""Set-up of a checkout: Python packages and everything else that tests, demo and benchmarks need."""
