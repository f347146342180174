"""What follows from fits: effective fractions, the frontier, best mixtures and the next runs."""
