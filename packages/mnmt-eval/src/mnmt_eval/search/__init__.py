"""Search for translations under any model that scores the next token.

Names are imported when they are first used, since options need no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
