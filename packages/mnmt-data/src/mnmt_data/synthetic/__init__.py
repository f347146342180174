"""Synthetic languages: endless parallel text whose irreducible loss is known exactly.

Those of a *lexicon* (`SyntheticConfig`): a sentence is a row of concepts drawn from a Zipf law. The source
language `xx` spells each concept in one way; every target language has random spellings of its own, two for
each concept. The second is chosen with a fixed probability: no model can foresee that choice, and it is all
the loss that a perfect model has left. The lexicon must sit in a model's weights, so the loss falls as the
model grows. Any two of the languages can be paired, in any direction. The target languages may share a part
of their lexicon.

Those of *contexts* (`ContextsConfig`): each target word depends smoothly on several source words, through a
fixed random teacher of each language, whose features the languages may share. The words are few and none is
rare, so a model is limited by its size sooner than by what it has read.

Their test set can stand for all there is to say, by weights of its pairs, instead of for a sample.
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
