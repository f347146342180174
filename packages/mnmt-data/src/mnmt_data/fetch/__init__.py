"""Real parallel text that a Debian system can have without an account."""
