"""The processes that train one model, and which rows of a tensor each of them holds."""
