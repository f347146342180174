"""Studies: what is trained, as a TOML file each, and what is computed from the tables of the trained runs."""
