"""The report of a study: one page to read, the same numbers as JSON, and the run table."""

from mnmt_laws.report.build import ReportSummary, build_report

__all__ = ["ReportSummary", "build_report"]
