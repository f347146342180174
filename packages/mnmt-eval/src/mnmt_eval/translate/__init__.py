"""Translation of text with any model that can be searched and any vocabulary.

Names are imported when they are first used, since only some of them need torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
