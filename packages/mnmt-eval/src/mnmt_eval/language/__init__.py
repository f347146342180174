"""Language codes, and programs that identify a sentence's language; no torch needed."""

from mnmt_eval.language.codes import base_language, languages_of
from mnmt_eval.language.identifiers import IDENTIFIERS, Identifier, has_letters, load_identifier

__all__ = ["IDENTIFIERS", "Identifier", "base_language", "has_letters", "languages_of", "load_identifier"]
