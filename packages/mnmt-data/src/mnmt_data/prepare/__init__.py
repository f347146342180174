"""From a study's text to prepared data, in stages: clean, split, train the vocabulary, encode, describe.

Text is read in blocks by several processes, so that memory does not grow with it. Every stage leaves whole
files behind, and uses those of an earlier call, so that a stopped `prepare` continues where it was.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
