"""Answers in sentences: numbers come from `answers`, words from here."""
