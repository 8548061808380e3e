"""Kafka's field names (`isKRaftController`, `BrokerEpoch`) in Python's spelling (`is_kraft_controller`, `broker_epoch`).

One rule for every message, so that a reader of Kafka's documents can guess each key. No table of exceptions but one:
"KRaft" is one word.
"""

import re
from functools import cache

_KRAFT = re.compile("[kK]Raft")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@cache
def snake_case(name: str) -> str:
    """Return the key that a field of this name has in a body.

    >>> snake_case("isKRaftController"), snake_case("V0Host"), snake_case("ResultsByTopicV3AndBelow")
    ('is_kraft_controller', 'v0_host', 'results_by_topic_v3_and_below')
    """
    return _WORD_BOUNDARY.sub("_", _KRAFT.sub("Kraft", name)).lower()
