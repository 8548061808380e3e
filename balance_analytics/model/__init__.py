"""Values of the analytics: samples, facts, results. Leaves out how they are computed."""
