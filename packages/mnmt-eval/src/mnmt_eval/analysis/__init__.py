"""The papers' analyses of scores that are there: plain numbers in, frozen results out; numpy alone."""

from mnmt_eval.analysis.correlation import Interval, MetricLine, metric_line
from mnmt_eval.analysis.cost import QualityAtCost, SystemCost, quality_at_cost
from mnmt_eval.analysis.groups import GroupScore, length_groups, length_thirds, origin_groups, score_groups
from mnmt_eval.analysis.resources import Resources, ResourceScore, resource_scores
from mnmt_eval.analysis.symptoms import SYMPTOMS, symptoms
from mnmt_eval.analysis.transfer import RelativeTransfer, relative_transfer
from mnmt_eval.analysis.zero_shot import ZeroShot, ZeroShotDirection, zero_shot

__all__ = [
    "SYMPTOMS",
    "GroupScore",
    "Interval",
    "MetricLine",
    "QualityAtCost",
    "RelativeTransfer",
    "ResourceScore",
    "Resources",
    "SystemCost",
    "ZeroShot",
    "ZeroShotDirection",
    "length_groups",
    "length_thirds",
    "metric_line",
    "origin_groups",
    "quality_at_cost",
    "relative_transfer",
    "resource_scores",
    "score_groups",
    "symptoms",
    "zero_shot",
]
