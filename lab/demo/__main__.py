"""`python -m lab.demo`: play all scenes, print the results and end all processes."""

import sys

from lab.checks.traffic import Traffic
from lab.demo import scenes
from lab.demo.stage import stage
from lab.demo.timeline import Timeline
from lab.errors import LabError
from lab.processes.process import processes


def main() -> int:
    """Return the exit code."""
    timeline = Timeline()
    timeline.scene("Steward: Kafka's controller as a Kubernetes operator, on real components")
    try:
        with stage(timeline) as running:
            scenes.declare(running, timeline)
            with Traffic(running.cluster.bootstrap(), scenes.TOPIC) as traffic:
                timeline.note(f"load on {scenes.TOPIC}: acks=all, min.insync.replicas=2, read by a consumer group")
                scenes.move(running, timeline, traffic)
                scenes.kill_a_leader(running, timeline, traffic)
                scenes.leave(running, timeline)
                scenes.lose_the_controller(running, timeline, traffic)
                scenes.lose_the_operator(running, timeline)
                scenes.refuse(running, timeline)
                report = traffic.stop()
            scenes.check(report.ok, report.summary())
            timeline.fact(report.summary())
            scenes.clean_up(running, timeline)
        left = [process.name for process in processes() if process.running]
        scenes.check(not left, f"no process still running, found {left}")
    except LabError as error:
        sys.stderr.write(f"demo failed: {error}\n")
        return 1
    timeline.fact(f"done in {timeline.elapsed_s:.0f} s; all processes have ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
