"""Details of a namespace after a failed test: its pods, their descriptions, events and logs."""

from __future__ import annotations

from collections.abc import Iterator

from e2e.kube import Kube

LOG_LINES = 60

LINE_CHARACTERS = 300

DESCRIBED_LINES = 60
"""The events are at the end of a description."""

EVENTS = 40


def evidence(kube: Kube, since_s: float) -> Iterator[tuple[str, str]]:
    """Yield titles and texts; errors here are ignored, because the test has failed already."""
    yield f"pods of {kube.namespace}", kube.attempt("get", "pods", "--output=wide").stdout
    resources = kube.attempt(
        "get",
        "clusters.steward.dev,topics.steward.dev,reassignments.steward.dev,elections.steward.dev",
        "--output=wide",
    )
    yield f"resources of {kube.namespace}", resources.stdout
    events = kube.attempt("get", "events", "--sort-by=.lastTimestamp").stdout
    yield f"events of {kube.namespace}", _end(events, EVENTS)
    for pod in kube.attempt("get", "pods", "--output=name").stdout.split():
        ready = "{.status.containerStatuses[*].ready}"
        if kube.attempt("get", pod, f"--output=jsonpath={ready}").stdout != "true":
            yield f"description of {pod}", _end(kube.attempt("describe", pod).stdout, DESCRIBED_LINES)
            before = kube.attempt("logs", pod, "--previous", f"--tail={LOG_LINES}")
            if not before.returncode:
                yield f"log of {pod}, the run before", _end(before.stdout, LOG_LINES)
        options = ["--all-containers", f"--since={since_s:.0f}s", f"--tail={LOG_LINES}"]
        yield f"log of {pod}", _end(kube.attempt("logs", pod, *options).stdout, LOG_LINES)


def _end(text: str, lines: int) -> str:
    return "\n".join(line[:LINE_CHARACTERS] for line in text.splitlines()[-lines:])
