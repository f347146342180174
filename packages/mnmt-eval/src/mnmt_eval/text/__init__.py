"""Files of text and of n-best lists, and what looks wrong with them.

Names are imported when they are first used, since help pages need none.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
