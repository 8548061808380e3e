"""Realistic generated load: seeded, of any size, with the true results to compare a study with.

`LoadSpec` specifies the load, `lay_out(spec)` creates the cluster, and the load is written either as samples per minute
(`minute_samples`) or as hourly facts (`hourly_facts`), day by day, so that only a day of hours or an hour of minutes is in memory. The
truth (`truth`) is a value: which partitions are hot, how uneven brokers are, when each disk is full.

Topics are drawn by Zipf's law; load has a daily and a weekly rhythm, growth, bursts and noise; brokers fail and their leaders move;
topics are deleted or created again, and samples are missing.
"""

from lab.generated_load.layout import Layout, lay_out
from lab.generated_load.spec import LoadSpec
from lab.generated_load.truth import Truth, truth_of

__all__ = ["Layout", "LoadSpec", "Truth", "lay_out", "truth_of"]
