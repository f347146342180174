"""Languages: their codes, and which of them a sentence is in; no torch needed."""

from mnmt_eval.language.codes import base_language
from mnmt_eval.language.identifier import IDENTIFIERS, Identifier, identifier

__all__ = ["IDENTIFIERS", "Identifier", "base_language", "identifier"]
