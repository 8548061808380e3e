"""Python names of Kafka's fields: `isKRaftController` is `is_kraft_controller`, `BrokerEpoch` is `broker_epoch`.

One rule for all messages, so that the keys follow from Kafka's documentation. The only exception: "KRaft" is one word.
"""

import re
from functools import cache

_KRAFT = re.compile("[kK]Raft")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@cache
def snake_case(name: str) -> str:
    """Return the key of a field in a body.

    >>> snake_case("isKRaftController"), snake_case("V0Host"), snake_case("ResultsByTopicV3AndBelow")
    ('is_kraft_controller', 'v0_host', 'results_by_topic_v3_and_below')
    """
    return _WORD_BOUNDARY.sub("_", _KRAFT.sub("Kraft", name)).lower()
