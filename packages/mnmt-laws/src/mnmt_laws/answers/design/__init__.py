"""The next runs to train: candidates, their information, and studies that train them."""

from mnmt_laws.answers.design.next_runs import Design

__all__ = ["Design"]
