"""The formats on disk: atomic files, token shards, the vocabulary, corpus folders and prepared data.

Names are imported when they are first used, since only some of them need pyarrow or sentencepiece.
"""

import lazy_loader

from mnmt_data.store.atomic_file import atomic_file as atomic_file  # else its module would have the name

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
