"""The options of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BOOTSTRAP_SAMPLES, PERMUTATION_SAMPLES, SEED
from mnmt_eval.metrics.registry import MetricSet

SIGNIFICANT = 0.05
"""The corrected p-value below which a difference is called significant."""

MOST_DRAWS = 10**7
"""Most draws: more than any p-value needs, and hours of work."""


@dataclass(frozen=True, kw_only=True)
class ScoreFiles:
    """The files with the scores of one metric that was computed elsewhere."""

    name: str
    """The metric's name."""
    paths: tuple[Path, ...]
    """One file with a column for each system, or a file a system in the order of the systems."""
    higher_is_better: bool = True


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """The options of a comparison.

    Raises:
        EvalError: If a field is out of its range.
    """

    metrics: MetricSet = field(default_factory=MetricSet)
    scores: tuple[ScoreFiles, ...] = ()
    """Metrics with scores from files."""
    human: str | None = None
    """The metric that holds people's scores, with which all others are compared; by default none."""
    samples: int = BOOTSTRAP_SAMPLES
    """Resamples of the bootstrap, for intervals."""
    permutations: int = PERMUTATION_SAMPLES
    """Random exchanges of the permutation test, where not all can be made."""
    seed: int = SEED
    """Seed of both."""
    grouping: str | None = None
    """How sentences are grouped to be scored apart, one of `GROUPINGS`; by default not at all."""
    losses: bool = False
    """Whether the losses of runs are compared too."""

    def __post_init__(self) -> None:
        if not self.names:
            raise EvalError("there is nothing to compare by; name a metric, or scores with --scores.")
        if self.human is not None and self.human not in self.names:
            names = ", ".join(self.names)
            raise EvalError(f"`human` must be one of {names}, but is {self.human!r}; see --scores.")
        if twice := [name for name in self.names if self.names.count(name) > 1]:
            raise EvalError(f"two metrics are called {twice[0]!r}; name the scores, as in ours=FILE.")
        for name, least in {"samples": 1, "permutations": 1, "seed": 0}.items():
            if (value := getattr(self, name)) < least:
                raise EvalError(f"`{name}` must be at least {least}, but is {value}.")
        for name in ("samples", "permutations"):
            if (value := getattr(self, name)) > MOST_DRAWS:
                raise EvalError(f"`{name}` must be at most {MOST_DRAWS:,}, but is {value:,}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all metrics, in the order of their tables."""
        return (*self.metrics.names, *(each.name for each in self.scores), *["loss"] * self.losses)


def score_files(arguments: Sequence[str], lower_is_better: Collection[str] = ()) -> tuple[ScoreFiles, ...]:
    """Return the metrics that `NAME=FILE`, or a file called like its metric, name; a name may have several.

    Raises:
        EvalError: If `lower_is_better` names none of them.
    """
    from mnmt_eval.metrics.protocol import higher_is_better  # with numpy, which help pages do without

    paths: dict[str, list[Path]] = {}
    for argument in arguments:
        name, path = split_name(argument)
        paths.setdefault(name or path.name.partition(".")[0], []).append(path)
    if other := [name for name in lower_is_better if name not in paths]:
        listed = ", ".join(paths) or "none"
        raise EvalError(f"`lower_is_better` must name scores, of {listed}, but has {other[0]!r}.")
    return tuple(
        ScoreFiles(
            name=name,
            paths=tuple(files),
            higher_is_better=higher_is_better(name) and name not in lower_is_better,
        )
        for name, files in paths.items()
    )


def split_name(argument: str) -> tuple[str, Path]:
    """Return the name and the path of an argument such as `ours=out.de`; without a name, `""`."""
    name, equals, place = argument.partition("=")
    if equals and name and place and not Path(argument).exists():
        return name, Path(place)
    return "", Path(argument)
