"""Systems side by side on one text, with intervals, significance and groups of sentences."""
