"""Search, translation and metrics for translation models.

`mnmt_eval.metrics` needs no torch; `mnmt_eval.search` and `mnmt_eval.translate` do.
"""
