"""Readers of every format of parallel text, which give blocks of sentence pairs.

Names are imported when they are first used, since only some of them need pyarrow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
