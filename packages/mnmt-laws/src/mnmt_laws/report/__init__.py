"""The report of a study: one page to read, the same numbers as JSON, and the run table."""

from mnmt_laws.report.build import Report, build_report

__all__ = ["Report", "build_report"]
