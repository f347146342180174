"""Systems side by side on one text, with intervals, tests of all pairs, ranks and groups of sentences.

Names are imported when they are first used, since help pages need no numbers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
