"""Realistic load, made up: seeded, of any size, with the truth about it beside it.

`LoadSpec` says what is wanted, `lay_out(spec)` lays a cluster out, and its load is written either as samples a minute
(`minute_samples`) or as hourly facts (`hourly_facts`), day by day, so that memory holds a day of hours or an hour of minutes. The
truth (`truth`) is a value: which partitions are hot, how uneven brokers are, when each disk is full.

Topics are drawn by Zipf's law; load has a daily and a weekly rhythm, growth, bursts and noise; brokers go down and their leaders move;
topics are made anew, topics are deleted, and looks are missing. Leaves out what anybody finds in it.
"""

from lab.generated_load.layout import Layout, lay_out
from lab.generated_load.spec import LoadSpec
from lab.generated_load.truth import Truth, truth_of

__all__ = ["Layout", "LoadSpec", "Truth", "lay_out", "truth_of"]
