"""The output of the demo: one line for each event, with the seconds since the start."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

MILLISECONDS_BELOW_S = 10.0
"""Shorter times are printed in milliseconds."""


def duration(seconds: float) -> str:
    """Format a time.

    >>> duration(0.0421), duration(12.34)
    ('42 ms', '12.3 s')
    """
    return f"{seconds * 1000:.0f} ms" if seconds < MILLISECONDS_BELOW_S else f"{seconds:.1f} s"


class Timeline:
    """Prints lines that begin with the seconds since the start of the demo."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def scene(self, title: str) -> None:
        """Print the title of a scene."""
        self._console.print(f"\n[bold]{escape(title)}[/bold]")

    def note(self, text: str) -> None:
        """Print an event."""
        self._console.print(f"[dim]{self.elapsed_s:7.1f} s[/dim]  {escape(text)}")

    def fact(self, text: str) -> None:
        """Print a result that was measured or checked."""
        self._console.print(f"[dim]{self.elapsed_s:7.1f} s[/dim]  [green]✓[/green] {escape(text)}")

    @contextmanager
    def timed(self, text: str) -> Iterator[None]:
        """Print the time that the block took, at its end."""
        began = time.monotonic()
        yield
        self.fact(f"{text}: {duration(time.monotonic() - began)}")
