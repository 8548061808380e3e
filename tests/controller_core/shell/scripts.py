"""Golden scripts: text in, text out, read as a specification and reviewed as a diff.

    # What the block shows, and the source of the rule.
    command with words
    another command
    ----
    result

A script is blocks with a blank line between them; the code under test writes everything under `----`. With REWRITE_GOLDEN=1 in the
environment the scripts are rewritten instead of being compared.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.golden_scripts import assert_golden, golden_text

Do = Callable[[str], Awaitable[list[str]]]
"""Runs one command; returns the lines of its result."""

LINE = "----"


async def check_script(script: Path, do: Do) -> None:
    """Run a script's commands, and compare the results with those in the script, or rewrite them."""
    blocks = golden_text(script).split("\n\n")
    assert_golden(script, "\n".join([await _block(block, do) for block in blocks]))


async def _block(block: str, do: Do) -> str:
    given = [line for line in block.strip("\n").split(f"\n{LINE}")[0].split("\n") if line != LINE]
    commands = [line for line in given if not line.startswith("#")]
    results = [line for command in commands for line in await do(command)]
    assert "" not in results, "a blank line would end the block"
    return "\n".join([*given, LINE, *(results or ["nothing"])]) + "\n"
