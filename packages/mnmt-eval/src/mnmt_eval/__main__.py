"""`python -m mnmt_eval` is `mnmt-eval`."""

from mnmt_eval.cli import main

main()
