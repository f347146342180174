"""The next runs to train: candidates, what each would teach, and studies that train them."""

from mnmt_laws.answers.design.next_runs import Design

__all__ = ["Design"]
