"""Three pairs of real tasks: the laws, effective shares, predictions, advice and translations."""
