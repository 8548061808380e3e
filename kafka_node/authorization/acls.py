"""All ACLs of a cluster, by the resources that they protect.

ACLs of a resource: those of its own name, those of `*`, and those of each prefix of its name. There are few different
lengths of prefixes, however many prefixes, so each length is one lookup in a table.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from kafka_node.authorization.acl import WILDCARD, Binding, BindingFilter, Entry, Pattern, PatternType, ResourceType

Entries = frozenset[Entry]
NO_ENTRIES: Entries = frozenset()


class _Names:
    """The patterns of one resource type."""

    def __init__(self) -> None:
        self.literal: dict[str, Entries] = {}
        self.prefixed: dict[str, Entries] = {}
        self.lengths: Counter[int] = Counter()

    def put(self, pattern: Pattern, entries: Entries) -> None:
        named = self.prefixed if pattern.pattern_type is PatternType.PREFIXED else self.literal
        had = named.pop(pattern.name, NO_ENTRIES)
        if entries:
            named[pattern.name] = entries
        if named is self.prefixed:
            self.lengths[len(pattern.name)] += bool(entries) - bool(had)
            if self.lengths[len(pattern.name)] == 0:
                del self.lengths[len(pattern.name)]

    def guarding(self, name: str) -> Iterator[Entries]:
        if (own := self.literal.get(name)) is not None:
            yield own
        if name != WILDCARD and (every := self.literal.get(WILDCARD)) is not None:
            yield every
        for length in self.lengths:
            if length <= len(name) and (prefixed := self.prefixed.get(name[:length])) is not None:
                yield prefixed


class Acls:
    """All ACLs of a cluster. Only `put` changes them."""

    def __init__(self, known: Mapping[Pattern, AbstractSet[Entry]] | None = None) -> None:
        self._of_type = {resource_type: _Names() for resource_type in ResourceType}
        for pattern, entries in (known or {}).items():
            self.put(pattern, entries)

    def put(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replace a pattern's entries; without entries the pattern is removed."""
        self._of_type[pattern.resource_type].put(pattern, frozenset(entries))

    def of(self, pattern: Pattern) -> Entries:
        """Return a pattern's entries."""
        names = self._of_type[pattern.resource_type]
        named = names.prefixed if pattern.pattern_type is PatternType.PREFIXED else names.literal
        return named.get(pattern.name, NO_ENTRIES)

    def guarding(self, resource_type: ResourceType, name: str) -> list[Entries]:
        """Return the entries of each pattern that matches a resource."""
        return list(self._of_type[resource_type].guarding(name))

    def patterns(self, resource_type: ResourceType | None = None) -> Iterator[tuple[Pattern, Entries]]:
        """Iterate over all patterns, or those of one resource type."""
        for shown_type in ResourceType if resource_type is None else (resource_type,):
            names = self._of_type[shown_type]
            for kind, named in ((PatternType.LITERAL, names.literal), (PatternType.PREFIXED, names.prefixed)):
                for name, entries in named.items():
                    yield Pattern(shown_type, name, kind), entries

    def find(self, asked: BindingFilter) -> list[Binding]:
        """List the bindings that a filter selects, in a stable order."""
        only = None if asked.pattern.resource_type is ResourceType.ANY else asked.pattern.resource_type
        return [
            Binding(pattern, entry)
            for pattern, entries in sorted(self.patterns(only), key=lambda item: item[0])
            if asked.pattern.matches(pattern)
            for entry in sorted(entries)
            if asked.entry.matches(entry)
        ]
