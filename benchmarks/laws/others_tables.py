"""Held-out errors on published tables of mixtures, beside those of their authors' methods.

Claims: on ScaleBench's table (5 domains, 4 sizes) a law of the whole mixture predicts held-out mixtures
within half a percent; on RegMix's (17 domains, 512 models of one size) a law with transfer ranks and predicts
the 256 held-out models at least as well as its authors' regression trees. Peers: these trees
(LightGBM with the authors' settings, stopped early on the held-out models as they do), and the laws of Ye et
al. 2024 and Shukor et al. 2025. Choices among their mixtures cost less than equal and proportional weights.
Cited in docs/studies/decisions.md.

The tables are not ours to distribute; name the folder that holds `scalebench_domain.csv` and `regmix/` by
`--tables` or the environment variable MNMT_TABLES. What is not there is skipped with a sentence.
`slimpajama.csv` is `data/dmsl_llm_slimpajama.csv` of github.com/meiqwq/Explaining-Data-Mixing-Scaling-Laws.

    python -m benchmarks.laws.others_tables --tables tables --out benchmarks/results/laws/others_tables.json
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from benchmarks.measurement import (
    Figures,
    Names,
    Out,
    is_installed,
    print_table,
    provenance,
    run,
    write_report,
)
from mnmt_laws import Forecast, ResidualBootstrap, fit, forecast, observe
from mnmt_laws.laws import LawName

NO_REFITS = ResidualBootstrap(refits=0)
SIZED: tuple[LawName, ...] = (
    "transfer-capacity",
    "simplex-capacity",
    "mixture-additive",
    "mixture-limit",
    "capacity",
)
UNSIZED: tuple[LawName, ...] = ("transfer", "ye")
LONG: tuple[LawName, ...] = ("transfer-share", "shukor", "atlas", "he", "simplex-share")
TREES = {"boosting_type": "gbdt", "objective": "regression", "learning_rate": 1e-2, "seed": 42,
         "verbosity": -1, "num_threads": 1}  # fmt: skip


def main(*, tables: Path | None = None, studies: Names = (), domains: int = 13, out: Out = None) -> None:
    """Print a table of held-out errors for each published table that is there.

    Args:
        tables: Folder of the tables; by default that of MNMT_TABLES.
        studies: Which of ScaleBench, RegMix, RegMix-larger, SlimPajama, and the choices among held-out
            mixtures ScaleBench-choice and RegMix-choice; all by default. Figures of others
            stay in the JSON file as they are.
        domains: How many of RegMix's losses to fit.
        out: JSON file for the figures.
    """
    folder = tables or Path(os.environ.get("MNMT_TABLES", "."))
    figures: Figures = json.loads(out.read_text(encoding="utf-8"))["tables"] if out and out.exists() else {}
    for name, needs, study in (
        ("ScaleBench", "scalebench_domain.csv", scalebench),
        ("ScaleBench-choice", "scalebench_domain.csv", scalebench_choice),
        ("RegMix-choice", "regmix", lambda path: regmix_choice(path, domains)),
        ("RegMix", "regmix", lambda path: regmix(path, domains)),
        ("RegMix-larger", "regmix", lambda path: regmix_larger(path, domains)),
        ("SlimPajama", "slimpajama.csv", slimpajama),
    ):
        if studies and name not in studies:
            continue
        if not (folder / needs).exists():
            print(
                f"{name} skipped: `{needs}` is not in {folder}; name its folder by --tables or MNMT_TABLES."
            )
            continue
        print(f"\n### {name}\n", flush=True)
        figures[name] = list(study(folder / needs))
        print_table(figures[name])
        description = provenance("mnmt-laws", "lightgbm")
        write_report(out, "held-out errors on published tables", {"tables": figures}, description)


def scalebench(path: Path) -> Iterator[Figures]:
    """Yield each law's errors on the held-out mixtures of ScaleBench's table."""
    table = pd.read_csv(path)
    held_out = table[table["role"] == "held-out"].reset_index(drop=True)
    is_trained = (held_out["weight"] > 0).to_numpy()
    for law in SIZED:
        predicted = fit(table, law=law, uncertainty=NO_REFITS).predict(held_out)
        zero_shot = np.abs(predicted / held_out["value"].to_numpy() - 1)[~is_trained]
        some = held_out[is_trained]
        figures = errors(predicted[is_trained], some["value"].to_numpy(), some["task"])
        yield {
            "law": law,
            **figures,
            "at weight 0": "–" if np.isnan(zero_shot).any() else f"{zero_shot.mean():.2%}",
        }


def errors(predicted: np.ndarray, observed: np.ndarray, tasks: pd.Series) -> Figures:
    """Return mean relative error, R² and the mean over tasks of the rank correlation."""
    relative = predicted / observed - 1
    ranks = [spearmanr(predicted[tasks == task], observed[tasks == task])[0] for task in tasks.unique()]
    return {
        "mean error": f"{np.mean(np.abs(relative)):.2%}",
        "mean signed": f"{np.mean(relative):+.2%}",
        "R²": f"{1 - np.var(predicted - observed) / np.var(observed):.4f}",
        "Spearman": f"{100 * np.mean(ranks):.2f}",
    }


def scalebench_choice(path: Path) -> Iterator[Figures]:
    """Yield the regret of choices among mixtures, where domains count alike, and where each counts fourfold.

    The choice is among the held-out mixtures of each size, and among all mixtures of the largest size by what
    was fitted to the smaller ones.
    """
    table = pd.read_csv(path)
    fitted, largest = table[table["role"] == "fit"], table["size"].max()
    held_out = table[table["role"] == "held-out"]
    whole = forecast(observe(fitted.reset_index(drop=True)), size=float(largest))
    for size, rows in held_out.groupby("size"):
        yield from _choices(f"held-out, {size:.3g}", rows, whole)
    smaller = observe(fitted[fitted["size"] < largest].reset_index(drop=True))
    yield from _choices(
        "all of the largest size", table[table["size"] == largest], forecast(smaller, size=float(largest))
    )


def _choices(name: str, rows: pd.DataFrame, result: Forecast) -> Iterator[Figures]:
    wide = rows.pivot_table(index="mixture", columns="task", values="value")[result.tasks].dropna()
    points = np.array([weights_of(text, result.sources) for text in wide.index])
    predicted = result.losses(points, size=float(rows["size"].iloc[0])).mean(axis=0)
    count = len(result.tasks)
    wants = {"all alike": np.ones((1, count)), "one fourfold": np.ones((count, count)) + 3 * np.eye(count)}
    for wish, factors in wants.items():
        each = pd.DataFrame(
            regrets(wide.to_numpy() @ one, points, {"advice": one @ predicted}, importance=one)
            for one in factors / factors.sum(axis=1, keepdims=True)
        )
        yield {"choice": name, "mixtures": len(wide), "counts": wish} | each.mean().round(1).to_dict()


def regmix_choice(folder: Path, domains: int) -> Iterator[Figures]:
    """Yield the regret of choices among larger models' mixtures by models of 1M, for the mean of losses.

    The law is `transfer`, which has the least held-out errors of those without size; an average over forms
    would refit 17 domains many times.
    """
    fitted = read_regmix(folder, "train")
    tasks = list(dict.fromkeys(fitted["task"]))[:domains]
    law = fit(fitted[fitted["task"].isin(tasks)], law="transfer", uncertainty=NO_REFITS)
    proportions = features(fitted, tasks[0])[0].mean(axis=0)
    for scale in ("1m", "60m", "1B"):
        parts = {
            task: rows.reset_index(drop=True)
            for task, rows in read_regmix(folder, "test", scale).groupby("task")
        }
        shares, _ = features(parts[tasks[0]], tasks[0])
        predicted = {"advice": np.mean([law.predict(parts[task]) for task in tasks], axis=0)}
        predicted["linear"] = np.mean([linear(fitted, parts[task], task) for task in tasks], axis=0)
        if is_installed("lightgbm"):
            predicted["trees"] = np.mean([trees(fitted, parts[task], task) for task in tasks], axis=0)
        observed = np.mean([parts[task]["value"].to_numpy() for task in tasks], axis=0)
        yield {"models": scale, "mixtures": len(observed)} | regrets(
            observed, shares, predicted, proportions=proportions
        )


def linear(fitted: pd.DataFrame, held_out: pd.DataFrame, task: str) -> np.ndarray:
    """Return the predictions of a linear regression of log-losses on weights."""
    (x, y), (new_x, _) = features(fitted, task), features(held_out, task)
    solution = np.linalg.lstsq(np.c_[np.ones(len(x)), x], np.log(y), rcond=None)[0]
    return np.asarray(np.exp(np.c_[np.ones(len(new_x)), new_x] @ solution))


def weights_of(text: str, sources: list[str]) -> list[float]:
    """Return the weights of a mixture `a:0.3,b:0.7`, by source."""
    weights = {name: float(weight) for name, _, weight in (part.rpartition(":") for part in text.split(","))}
    return [weights.get(source, 0.0) for source in sources]


def regrets(
    observed: np.ndarray,
    shares: np.ndarray,
    predicted: dict[str, np.ndarray],
    *,
    importance: np.ndarray | None = None,
    proportions: np.ndarray | None = None,
) -> Figures:
    """Return what choices cost more than the best held-out mixture, in thousandths of a nat.

    Args:
        observed: (mixtures,) measured costs.
        shares: (mixtures, sources) weights; rules take the nearest mixture.
        predicted: (mixtures,) costs by method, which takes the least.
        importance: (sources,) of the tasks, for weights by importance.
        proportions: (sources,) the mean mixture of the models fitted, which follows the corpus.
    """
    rules = {"equal weights": np.full(shares.shape[1], 1 / shares.shape[1])}
    rules |= {} if importance is None else {"p = importance": importance}
    rules |= {} if proportions is None else {"proportional": proportions}
    rows = {name: int(costs.argmin()) for name, costs in predicted.items()}
    rows |= {name: int(np.abs(shares - point).sum(axis=1).argmin()) for name, point in rules.items()}
    named = {name: round(1e3 * (observed[row] - observed.min()), 1) for name, row in rows.items()}
    return named | {"a mixture at random": round(1e3 * (observed.mean() - observed.min()), 1)}


def regmix(folder: Path, domains: int) -> Iterator[Figures]:
    """Yield for each of RegMix's losses the errors of laws and trees on the 256 held-out models."""
    fitted, held_out = read_regmix(folder, "train"), read_regmix(folder, "test")
    tasks = list(dict.fromkeys(fitted["task"]))[:domains]
    table = pd.concat([fitted.assign(role="fit"), held_out.assign(role="held-out")], ignore_index=True)
    predictions: dict[str, list[np.ndarray]] = {}
    for law in UNSIZED:
        whole = fit(table[table["task"].isin(tasks)], law=law, uncertainty=NO_REFITS)
        rows = held_out[held_out["task"].isin(tasks)].reset_index(drop=True)
        predicted = whole.predict(rows)
        predictions[law] = [predicted[(rows["task"] == task).to_numpy()] for task in tasks]
    predictions["ye, c free"] = [free_ye(fitted, held_out, task) for task in tasks]
    if is_installed("lightgbm"):
        predictions["trees"] = [trees(fitted, held_out, task) for task in tasks]
    observed = [held_out.loc[held_out["task"] == task, "value"].to_numpy() for task in tasks]
    for number, task in enumerate(tasks):
        yield {"loss": task} | {
            name: f"{100 * spearmanr(values[number], observed[number])[0]:.2f}, "
            f"{np.mean(np.abs(values[number] / observed[number] - 1)):.2%}"
            for name, values in predictions.items()
        }
    yield {"loss": "mean"} | {
        name: f"{100 * np.mean([spearmanr(p, o)[0] for p, o in zip(values, observed, strict=True)]):.2f}, "
        f"{np.mean([np.mean(np.abs(p / o - 1)) for p, o in zip(values, observed, strict=True)]):.2%}"
        for name, values in predictions.items()
    }


def regmix_larger(folder: Path, domains: int) -> Iterator[Figures]:
    """Yield the rank correlation of what is fitted to models of 1M parameters with losses of larger ones."""
    fitted = read_regmix(folder, "train")
    tasks = list(dict.fromkeys(fitted["task"]))[:domains]
    whole = fit(fitted[fitted["task"].isin(tasks)], law="transfer", uncertainty=NO_REFITS)
    for scale in ("1m", "60m", "1B"):
        larger = read_regmix(folder, "test", scale)
        ranks: dict[str, list[float]] = {"transfer": [], "trees": []}
        for task in tasks:
            rows = larger[larger["task"] == task].reset_index(drop=True)
            ranks["transfer"].append(spearmanr(whole.predict(rows), rows["value"])[0])
            if is_installed("lightgbm"):
                ranks["trees"].append(spearmanr(trees(fitted, larger, task), rows["value"])[0])
        yield {"models": scale} | {name: f"{100 * np.mean(some):.2f}" for name, some in ranks.items() if some}


def read_regmix(folder: Path, part: str, scale: str = "1m") -> pd.DataFrame:
    """Return the run table of RegMix's models of one size, mixtures divided by their sums."""
    mixtures = pd.read_csv(folder / f"{part}_mixture_{scale}.csv", index_col="index")
    losses = pd.read_csv(folder / f"{part}_pile_loss_{scale}.csv", index_col="index")
    mixtures = mixtures.loc[losses.index].rename(
        columns=lambda name: str(name).removeprefix("train_the_pile_")
    )
    losses.columns = [str(name).removeprefix("metric/the_pile_").removesuffix("_val_loss") for name in losses]
    mixtures = mixtures.div(mixtures.sum(axis=1), axis=0)
    texts = [",".join(f"{name}:{weight!r}" for name, weight in row.items()) for _, row in mixtures.iterrows()]
    return pd.concat(
        pd.DataFrame(
            {"run": [f"{part}{index}" for index in losses.index], "size": 1e6, "task": task, "mixture": texts,
             "weight": mixtures[task].to_numpy(), "metric": "loss", "value": losses[task].to_numpy()}
        )
        for task in losses
    )  # fmt: skip


def free_ye(fitted: pd.DataFrame, held_out: pd.DataFrame, task: str) -> np.ndarray:
    """Return the predictions of Ye et al.'s law by scipy, its constant not bounded by the least loss."""
    (x, y), (new_x, _) = features(fitted, task), features(held_out, task)

    def predict(theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.asarray(theta[0] + np.exp(theta[1] + weights @ theta[2:]))

    def residuals(theta: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.maximum(predict(theta, x), 1e-3) / y))

    start = np.concatenate([[y.min() - 0.3, 0.0], np.full(x.shape[1], -0.5)])
    solution = least_squares(residuals, start, x_scale="jac")
    return predict(solution.x, new_x)


def trees(fitted: pd.DataFrame, held_out: pd.DataFrame, task: str) -> np.ndarray:
    """Return the predictions of the authors' regression trees."""
    import lightgbm

    x, y = features(fitted, task)
    new_x, new_y = features(held_out, task)
    train = lightgbm.Dataset(x, y)
    stop = lightgbm.early_stopping(3, verbose=False)
    model = lightgbm.train(
        TREES, train, num_boost_round=1000, valid_sets=[lightgbm.Dataset(new_x, new_y, reference=train)],
        callbacks=[stop],
    )  # fmt: skip
    return np.asarray(model.predict(new_x, num_iteration=model.best_iteration))


def features(table: pd.DataFrame, task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of all sources, (models, sources), and losses."""
    rows = table[table["task"] == task]
    weights = [[float(item.rpartition(":")[2]) for item in text.split(",")] for text in rows["mixture"]]
    return np.array(weights), rows["value"].to_numpy()


def slimpajama(path: Path) -> Iterator[Figures]:
    """Yield each law's errors on a fifth of the mixtures, on the largest size and on the last tokens."""
    table = read_slimpajama(path)
    runs = table["mixture"].drop_duplicates().sort_values(ignore_index=True)
    new = set(runs.sample(frac=0.2, random_state=0))
    held_out = {
        "mixtures": table["mixture"].isin(new),
        "largest size": table["size"] == table["size"].max(),
        "second half of training": table["tokens"] > 1.01e10,
    }
    for law in LONG:
        row: Figures = {"law": law}
        for name, rows in held_out.items():
            fitted = fit(table[~rows].reset_index(drop=True), law=law, uncertainty=NO_REFITS)
            test = table[rows].reset_index(drop=True)
            relative = fitted.predict(test) / test["value"].to_numpy() - 1
            row[name] = f"{np.nanmean(np.abs(relative)):.2%} ({np.nanmean(relative):+.2%})"
        print(row, flush=True)
        yield row


def read_slimpajama(path: Path) -> pd.DataFrame:
    """Return the run table: a row for each checkpoint past the first and loss."""
    wide = pd.read_csv(path)
    wide = wide[wide["n_tokens"] > 3e9]
    sources = [name.removeprefix("weight_") for name in map(str, wide) if name.startswith("weight_")]
    weights = wide[[f"weight_{name}" for name in sources]].to_numpy()
    weights = weights / weights.sum(axis=1, keepdims=True)
    texts = [",".join(f"{n}:{w!r}" for n, w in zip(sources, row.tolist(), strict=True)) for row in weights]
    tasks = [name.removesuffix("_loss") for name in map(str, wide) if name.endswith("_loss")]
    table = pd.concat(
        pd.DataFrame(
            {"size": wide["model_size"], "tokens": wide["n_tokens"], "task": task, "mixture": texts,
             "weight": weights[:, sources.index(task)] if task in sources else 0.0,
             "metric": "loss", "value": wide[f"{task}_loss"]}
        )
        for task in tasks
    )  # fmt: skip
    cells = ["size", "tokens", "task", "mixture"]
    return table.dropna(subset="value").drop_duplicates(cells).reset_index(drop=True)


if __name__ == "__main__":
    run(main, smoke={"domains": 1})
