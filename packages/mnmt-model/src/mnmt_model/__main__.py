"""`python -m mnmt_model` is `mnmt-model`."""

from mnmt_model.cli import main

main()
