"""Synthetic languages: endless parallel text whose irreducible loss is known exactly.

Languages with a *lexicon* (`SyntheticConfig`): a sentence is a sequence of concepts from a Zipf law. The
source language `xx` has one spelling of each concept; every target language has two random ones. The second
is chosen with a fixed probability, and this unpredictable choice is the whole irreducible loss. The lexicon
must be stored in a model's weights, so the loss falls as the model grows. Any two languages can be paired, in
any direction. Target languages may share a part of their lexicon.

Languages with *contexts* (`ContextsConfig`): each target word depends smoothly on several source words,
through a fixed random teacher of each language; languages may share features of their teachers. There are few
words and no rare ones, so a model is limited by its size rather than by its data. By weights of its pairs, a
test set can represent the whole distribution instead of a sample.
"""

from mnmt_data.synthetic.concept_pairs import sentence_pairs
from mnmt_data.synthetic.concepts import zipf_probabilities
from mnmt_data.synthetic.config import SOURCE_LANGUAGE, SyntheticConfig
from mnmt_data.synthetic.contexts import ContextsConfig
from mnmt_data.synthetic.corpus import Languages, write_synthetic_corpus
from mnmt_data.synthetic.lexicon import shared_concepts

__all__ = [
    "SOURCE_LANGUAGE",
    "ContextsConfig",
    "Languages",
    "SyntheticConfig",
    "sentence_pairs",
    "shared_concepts",
    "write_synthetic_corpus",
    "zipf_probabilities",
]
