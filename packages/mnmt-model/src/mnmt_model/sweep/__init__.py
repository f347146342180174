"""The runs of a study: which there are, what they take, and training them all."""
