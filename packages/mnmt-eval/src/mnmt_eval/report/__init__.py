"""A page to send around: systems' scores with significance, and their translations to read."""

from mnmt_eval.report.document import ReportConfig, ReportContent, ReportedSystem, ReportedText, make_report
from mnmt_eval.report.page import write_report
from mnmt_eval.report.symptoms import SYMPTOMS, symptoms

__all__ = [
    "SYMPTOMS",
    "ReportConfig",
    "ReportContent",
    "ReportedSystem",
    "ReportedText",
    "make_report",
    "symptoms",
    "write_report",
]
