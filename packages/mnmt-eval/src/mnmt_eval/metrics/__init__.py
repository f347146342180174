"""Metrics with their signatures, confidence intervals and paired tests; only BLEURT needs torch.

Names are imported when they are first used, since help pages need no metrics.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
