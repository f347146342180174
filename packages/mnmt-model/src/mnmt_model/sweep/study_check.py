"""Check the sections of a study together, before its data are prepared."""

from __future__ import annotations

from mnmt_data import DataConfig, Mixture
from mnmt_data.errors import StudyError
from mnmt_data.study import StudyFile, unknown_key
from mnmt_model.planning.experts import check_expert_parallel, num_mixtures
from mnmt_model.planning.parameters import check_state, count_parameters
from mnmt_model.sweep.sizes import Size, read_sizes
from mnmt_model.sweep.sweep_config import TEMPERATURE, GoalConfig, SweepConfig
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig


def check_study(study: StudyFile) -> None:
    """Check the sections of a study, each and together.

    Raises:
        StudyError: Naming file, section and key of the first mistake.
    """
    for section, config in (("data", DataConfig), ("model", ModelConfig), ("train", TrainConfig)):
        if section in study.tables:
            study.section(section, config)
    if "sweep" not in study.tables:
        return
    sweep = study.section("sweep", SweepConfig)
    sizes = read_sizes(study, sweep)
    data = study.section("data", DataConfig) if "data" in study.tables else None
    goal = study.section("goal", GoalConfig)
    try:
        if all(size.train.weight_decay and size.train.optimizer != "adamw" for size in sizes.values()):
            raise ValueError('[train] `weight_decay` needs `optimizer = "adamw"`.')
        for name, size in sizes.items():
            _check_size(name, size, data)
        if data is not None:
            _check_tasks(sweep, data)
        _check_goal(goal, sweep, data)
    except ValueError as error:
        raise StudyError(f"{study.path}: {error}") from None


def _check_size(name: str, size: Size, data: DataConfig | None) -> None:
    try:
        _check_mixture(size)
        check_expert_parallel(size.model, size.train, size.train.expert_parallel)
        vocab_size = data.vocab.size if data and not data.vocab.path else 1
        check_state(count_parameters(size.model, vocab_size).num_params)
    except ValueError as error:
        raise ValueError(f"[sweep.sizes.{name}] {error}") from None
    try:
        _check_phases(size.train, data)
    except ValueError as error:
        where = f"sweep.sizes.{name}.mixing" if "mixing" in size.changes else "train.mixing"
        raise ValueError(f"[{where}] {error}") from None


def _check_mixture(size: Size) -> None:
    """Refuse a mixture of experts without a layer or a step."""
    model, train, most = size.model, size.train, size.model.most_layers
    if model.num_experts and not num_mixtures(model, most):
        raise ValueError(
            f"`experts_every` must be at most the layers of the deeper stack ({most}), or no layer has "
            f"experts, but is {model.experts_every}."
        )
    steps = min([train.steps, *train.horizons])
    if model.num_experts and train.uniform_routing_steps > steps:
        raise ValueError(
            f"`uniform_routing_steps` must be at most `steps`, or the first of `horizons` ({steps}), "
            f"but is {train.uniform_routing_steps}."
        )


def _check_phases(train: TrainConfig, data: DataConfig | None) -> None:
    """Check the tasks and the steps of the phases of the mixture."""
    phases = train.mixing.phases
    if data is not None:
        train.mixing.schedule(Mixture(dict.fromkeys(data.tasks, 1 / len(data.tasks))))
    if phases and phases[-1].step >= train.steps:
        raise ValueError(
            f"`phases` must begin before the last step ({train.steps}), but one is at {phases[-1].step}."
        )


def _check_tasks(sweep: SweepConfig, data: DataConfig) -> None:
    for key, _, grid in sweep.grids():
        for number, mixture in enumerate(grid.weights):
            where = f"[sweep.{key}] `mixtures[{number}]`"
            for task in mixture if set(mixture) != {TEMPERATURE} else ():
                if task in data.zero_shot:
                    raise ValueError(
                        f"{where} names `{task}`, which is one of `zero_shot`, never trained on."
                    )
                if task not in data.tasks:
                    raise ValueError(f"{where} names an unknown task {unknown_key(task, data.tasks)}")


def _check_goal(goal: GoalConfig, sweep: SweepConfig, data: DataConfig | None) -> None:
    if goal.size is not None and goal.size not in sweep.sizes:
        raise ValueError(f"[goal] `size` is an unknown size {unknown_key(goal.size, [*sweep.sizes])}")
    if data is None or not goal.importance:
        return
    if unknown := [task for task in goal.importance if task not in data.tasks]:
        raise ValueError(f"[goal] `importance` names an unknown task {unknown_key(unknown[0], data.tasks)}")
    if lacking := [task for task in data.tasks if task not in goal.importance]:
        raise ValueError(f"[goal] `importance` lacks {lacking[0]}; give it a number above 0.")
