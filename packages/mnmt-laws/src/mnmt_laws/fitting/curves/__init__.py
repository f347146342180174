"""Learning curves of single runs: the power law that each follows, and where it ends."""
