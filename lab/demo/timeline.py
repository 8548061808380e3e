"""What the demo prints: when, what, how long. Leaves out what happens."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

MILLISECONDS_BELOW_S = 10.0
"""Shorter times are told in milliseconds."""


def duration(seconds: float) -> str:
    """Tell a time as a person would.

    >>> duration(0.0421), duration(12.34)
    ('42 ms', '12.3 s')
    """
    return f"{seconds * 1000:.0f} ms" if seconds < MILLISECONDS_BELOW_S else f"{seconds:.1f} s"


class Timeline:
    """Lines with the seconds since the demo began in front."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def scene(self, title: str) -> None:
        """Begin a part of the story."""
        self._console.print(f"\n[bold]{escape(title)}[/bold]")

    def say(self, words: str) -> None:
        """Tell one thing."""
        self._console.print(f"[dim]{self.elapsed_s:7.1f} s[/dim]  {escape(words)}")

    def fact(self, words: str) -> None:
        """Tell one thing that was measured or checked."""
        self._console.print(f"[dim]{self.elapsed_s:7.1f} s[/dim]  [green]✓[/green] {escape(words)}")

    @contextmanager
    def timed(self, words: str) -> Iterator[None]:
        """Tell how long something took, when it is done."""
        began = time.monotonic()
        yield
        self.fact(f"{words}: {duration(time.monotonic() - began)}")
