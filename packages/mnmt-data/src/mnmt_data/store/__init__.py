"""What lies on disk: atomic files, token shards, the vocabulary, corpus folders and prepared data."""
