"""Operations in C++, compiled for this machine's processor where it has a compiler.

`library.py` compiles and loads them. The `.cpp` files hold the loops, a file for each subject, and `vector.h`
what they share. `transformer.operations` calls them and gives them their gradients.
"""

from mnmt_model.transformer.native.library import Argument, has_library, run, why_missing

__all__ = ["Argument", "has_library", "run", "why_missing"]
