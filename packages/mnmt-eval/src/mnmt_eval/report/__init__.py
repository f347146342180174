"""A page to read translations in: sources, references and what systems made of them, worst cases first."""

from mnmt_eval.report.document import Document, ReportedSystem, ReportedText, Reporting, document
from mnmt_eval.report.page import write_report

__all__ = ["Document", "ReportedSystem", "ReportedText", "Reporting", "document", "write_report"]
