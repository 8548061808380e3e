"""What the soak is made of: what is done to a cluster, what is asked of it meanwhile, and what must hold afterwards."""
