"""Operations in C++, compiled for this machine's processor where it has a compiler.

`library.py` compiles and loads them. The `.cpp` files hold the loops, a file for each subject, and `vector.h`
what they share. `transformer.operations` gives them their gradients; `transformer.products` and `optim` call
the rest.
"""

from mnmt_model.transformer.native.library import Argument, fingerprint, has_library, run, why_missing

__all__ = ["Argument", "fingerprint", "has_library", "run", "why_missing"]
