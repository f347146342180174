"""`python -m mnmt_laws` is the command `mnmt-laws`."""

from mnmt_laws.cli import main

main()
