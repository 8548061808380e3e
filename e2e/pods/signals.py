"""Send a signal to the main processes of a pod's containers: `signals.py POD_UID SIGNAL`. Runs on the pod's node, seeing its processes.

A container's main process is number 1 of its own process namespace; the pod's pause process gets no signal.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main_processes(uid: str) -> list[int]:
    """Return the process ids of a pod's containers, as this node counts them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            groups = (folder / "cgroup").read_text("utf-8")
            status = (folder / "status").read_text("utf-8")
        except OSError:  # it has ended
            continue
        if uid not in groups and uid.replace("-", "_") not in groups:
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if fields["NSpid"].split()[-1] == "1" and fields["Name"].strip() != "pause":
            found.append(int(folder.name))
    return found


if __name__ == "__main__":
    chosen = main_processes(sys.argv[1])
    for pid in chosen:
        os.kill(pid, signal.Signals[sys.argv[2]])
    sys.stdout.write(f"{len(chosen)}\n")
