"""Values of the analytics: samples, facts, results."""
