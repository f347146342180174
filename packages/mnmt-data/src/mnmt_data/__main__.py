"""`python -m mnmt_data` is `mnmt-data`."""

from mnmt_data.cli import main

main()
