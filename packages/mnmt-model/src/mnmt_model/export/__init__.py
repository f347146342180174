"""Export models for transformers and CTranslate2, with a certificate of equality."""

from mnmt_model.export.certificate import Certificate
from mnmt_model.export.comparison import certify
from mnmt_model.export.conversion import export_run
from mnmt_model.export.engines import convert_to_ctranslate2, token_log_probs
from mnmt_model.export.hugging_face import export_hugging_face
from mnmt_model.export.t5_layout import hugging_face_name

__all__ = [
    "Certificate",
    "certify",
    "convert_to_ctranslate2",
    "export_hugging_face",
    "export_run",
    "hugging_face_name",
    "token_log_probs",
]
