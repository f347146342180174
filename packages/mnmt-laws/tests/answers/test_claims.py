"""The claims hold where the laws do, and only there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_laws import (
    LawFit,
    Observations,
    Perturbation,
    ResidualBootstrap,
    check_claims,
    effective_fractions,
    fit,
)
from mnmt_laws.fitting.uncertainty import Uncertainty

FEW = Perturbation(refits=30)


def claims_of(per_weighting: LawFit, joint: LawFit) -> dict[tuple[str, str], bool | None]:
    claims = check_claims(per_weighting=per_weighting, joint=joint, effective=effective_fractions(joint))
    return {(claim.about, claim.task): claim.holds for claim in claims}


def test_claims_hold_where_the_laws_do(clean: Observations, joint: LawFit) -> None:
    per_weighting = fit(clean, law="per-weighting", uncertainty=FEW)
    assert set(claims_of(per_weighting, joint).values()) == {True}


def test_a_limit_that_moves_with_the_weight_is_noticed(clean: Observations) -> None:
    raised = clean.frame["value"] + 2.0 * (1 - clean.frame["weight"])
    frame = clean.frame.assign(value=raised, irreducible=np.nan)
    methods: dict[str, Uncertainty] = {"per-weighting": FEW, "joint": Perturbation(refits=0)}
    verdicts = claims_of(*(fit(frame, law=law, uncertainty=method) for law, method in methods.items()))  # type: ignore[arg-type]
    assert verdicts["l_inf", "en-de"] is False
    assert verdicts["joint", "en-de"] is False


def test_a_claim_whose_parameters_lie_at_bounds_is_undetermined(clean: Observations) -> None:
    frame = clean.frame.assign(irreducible=np.nan)
    falling = frame.assign(value=frame["value"] - 0.99 * frame.groupby("task")["value"].transform("min"))
    noisy = falling.assign(value=falling["value"] * np.exp(0.1 * np.cos(np.arange(len(frame)) * 7.0)))
    per_weighting = fit(noisy, law="per-weighting", uncertainty=FEW)
    claims = check_claims(per_weighting=per_weighting)
    assert all(claim.holds is None for claim in claims if claim.task == "en-de")
    assert any("at a bound" in claim.finding for claim in claims)


def test_what_would_go_unnoticed_is_undetermined(study_table: pd.DataFrame) -> None:
    loss = study_table[study_table["metric"].eq("loss") & study_table["role"].eq("fit")].drop(
        columns="irreducible"
    )
    noisy = loss.assign(value=loss["value"] * np.exp(0.05 * np.sin(np.arange(len(loss)) * 5.0)))
    method = ResidualBootstrap(refits=30)
    claims = check_claims(per_weighting=fit(noisy, law="per-weighting", uncertainty=method))
    assert any("would be noticed in only" in claim.finding for claim in claims)
