"""T5 1.1 models as transformers and CTranslate2 load them, with a proof that they agree; and the way back."""

from mnmt_model.export.certificate import Certificate
from mnmt_model.export.comparison import certify
from mnmt_model.export.conversion import export_run, import_run
from mnmt_model.export.hugging_face import export_hugging_face, read_hugging_face

__all__ = [
    "Certificate",
    "certify",
    "export_hugging_face",
    "export_run",
    "import_run",
    "read_hugging_face",
]
