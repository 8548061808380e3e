"""Files of a report: `report.html`, a PNG for each picture, `summary.json`, `metrics.prom`.

files = report_files(ReportInput("main", "2026-11-21T09:00:00Z", result, proposed_moves(proposal, "balance-2026-11-21")))
"""

from __future__ import annotations

import json

from balance_analytics.model.report_input import ReportInput
from balance_analytics.report.page import page_of, pictures_of
from balance_analytics.report.summary import metrics_of, summary_of

PAGE, SUMMARY, METRICS = "report.html", "summary.json", "metrics.prom"


def report_files(report: ReportInput) -> dict[str, bytes]:
    """Return the contents of each file by name; the same report gives the same bytes."""
    pictures, summary = pictures_of(report), summary_of(report)
    body = summary.rounded().to_json()
    del body["report"]  # the location, which is that of this file
    return {
        PAGE: page_of(report, pictures).encode(),
        **{f"{picture.name}.png": picture.png for picture in pictures},
        SUMMARY: (json.dumps(body, indent=2) + "\n").encode(),
        METRICS: metrics_of(summary, report.result.cluster_id).encode(),
    }
