"""Real parallel text that a Debian system can have without an account."""

from mnmt_data.fetch.config import FetchConfig

__all__ = ["FetchConfig"]
