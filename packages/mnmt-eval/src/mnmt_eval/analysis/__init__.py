"""The papers' analyses of scores, as functions of plain numbers, and of scored runs."""

from mnmt_eval.analysis.correlation import Interval, MetricLine, metric_line
from mnmt_eval.analysis.cost import QualityAtCost, SystemCost, quality_at_cost
from mnmt_eval.analysis.multilingual import (
    RelativeTransfer,
    Resources,
    ResourceScore,
    ZeroShot,
    ZeroShotDirection,
    relative_transfer,
    resource_scores,
    zero_shot,
)

__all__ = [
    "Interval",
    "MetricLine",
    "QualityAtCost",
    "RelativeTransfer",
    "ResourceScore",
    "Resources",
    "SystemCost",
    "ZeroShot",
    "ZeroShotDirection",
    "metric_line",
    "quality_at_cost",
    "relative_transfer",
    "resource_scores",
    "zero_shot",
]
