"""Keys: every key of a study file, with its default, its limits and its meaning.

Every key is in one table only, so that `key=value` on the command line is enough to name it.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from fedplan.core.learning_rate import Schedule
from fedplan.models import MODELS
from fedplan.participation import LAWS, Turns, Uniform
from fedplan.prices_and_limits import PRICES, STUDY_LIMITS, kebab
from fedplan.studies.courses import COURSE_NAMES, FIXED, ONLINE, PAPER, PUBLISHED
from fedplan.tasks.synthetic_data import MAX_SEED

DATA_SETS = ("synthetic", "mnist", "mnist-mini")
if TYPE_CHECKING:
    _Law = str
    _Course = str
    _Model = str
else:
    _Law, _Course, _Model = Literal[tuple(LAWS)], Literal[COURSE_NAMES], Literal[tuple(MODELS)]


def _choices(registry: Mapping[str, Any]) -> str:
    *most, last = (f"`{name}` ({entry.summary})" for name, entry in registry.items())
    return f"{', '.join(most)} or {last}"


def _key(
    default: Any, text: str, *, only: tuple[str, tuple[Any, ...]] | None = None, **limits: Any
) -> Any:
    """A key: its default, its meaning, and the values of another key that it requires."""
    extra: Any = {"only": only}
    return Field(default, description=text, json_schema_extra=extra, **limits)


def _with(key: str, *values: str | None) -> Callable[..., Any]:
    """Makes keys that require one of these values of another key."""
    return partial(_key, only=(key, values))


_ABOVE_ZERO = {float: {"gt": 0}, int: {"ge": 1}}  # of numbers of each kind
_generated = _with("data", *DATA_SETS)
_synthetic = _with("data", "synthetic")
_drawn = _with("file", None)


class Table(BaseModel):
    """A table of a study file, as it was read."""

    model_config = ConfigDict(
        alias_generator=kebab, allow_inf_nan=False, extra="forbid", frozen=True, strict=True
    )


class TaskTable(Table):
    """`[task]`: what is learnt, and by whom."""

    data: str = _key(
        ...,
        "What is learnt: `synthetic`, `mnist`, `mnist-mini` (a tenth of MNIST, no download), or "
        "the path of an .npz file, or of a folder with one per client.",
    )
    model: _Model = _key("logistic", f"What learns: {_choices(MODELS)}.")
    num_clients: int = _generated(100, "Clients N.", ge=1)
    alpha: float = _synthetic(1.0, "How far the clients' models differ.", ge=0)
    beta: float = _synthetic(1.0, "How far the clients' inputs differ.", ge=0)
    partition: Literal[
        "iid", "dirichlet", "power-law", "two-labels-balanced", "two-labels-shards"
    ] = _with("data", "mnist", "mnist-mini")(
        "iid",
        "How MNIST is divided among the clients: `iid`, `dirichlet`, `power-law` (of sizes), "
        "`two-labels-balanced` or `two-labels-shards`.",
    )
    concentration: float = _with("partition", "dirichlet")(
        0.5, "Near 0 each label is on one client; large values give an equal split.", gt=0, le=1e6
    )
    exponent: float = _with("partition", "power-law")(
        1.5, "Of the tail of sizes; if smaller, fewer clients hold more of the data.", ge=0.05
    )
    min_size: int = _with("partition", "power-law")(1, "Fewest samples of a client.", ge=1)
    samples_per_client: int = _with("partition", "two-labels-balanced")(
        300, "Samples per client, half of each of its labels as far as available.", ge=2
    )
    shards_per_label: int = _with("partition", "two-labels-shards")(
        20, "Shards a label is cut into; a client takes one of each of two labels.", ge=1
    )
    data_seed: int = _generated(
        0, "Seed of the synthetic data, or of the partition.", ge=0, le=MAX_SEED
    )


class TrainingTable(Table):
    """`[training]`: how to learn, and when a run ends."""

    batch_size: int = _key(64, "Samples per local step.", ge=1)
    learning_rate: float = _key(..., "Learning rate of the first round.", gt=0)
    schedule: Schedule = _key(
        "constant",
        "Learning rate of round r = 0, 1, ...: `constant`, `exponential` (times decay^r), "
        "`harmonic` (divided by 1 + r), `step` (times decay every decay-every rounds), `cosine` "
        "(falls to 0 over decay-rounds rounds, but never below 1% of the first) or `list` (see "
        "rates).",
    )
    decay: float = _with("schedule", "exponential", "step")(
        0.996, "Factor from round to round, or from step to step.", gt=0, le=1
    )
    decay_every: int | None = _with("schedule", "step")(
        None, "Rounds from one step to the next.", ge=1
    )
    decay_rounds: int | None = _with("schedule", "cosine")(
        None, "Rounds until the cosine reaches its minimum.", ge=1
    )
    rates: list[Annotated[float, Field(gt=0)]] | None = _with("schedule", "list")(
        None, "Learning rates of the rounds after the first, one each; the last one continues."
    )
    participation: _Law | None = _key(
        None,
        f"Who trains when: {_choices(LAWS)}. By default `simulate` and `sweep` draw uniformly, "
        "and `run` leaves it to the course.",
    )
    clients_per_round: int | None = _with(
        "participation", None, *(law for law in LAWS if law != Turns.law)
    )(None, "Clients per round, K.", ge=1)
    groups: int | None = _with("participation", Turns.law)(
        None, "Most groups that take turns; by default the planner chooses.", ge=1
    )
    dropout: float = _key(
        0.0, "Probability that a client is absent when its turn comes.", ge=0, lt=1
    )
    local_steps: int | None = _key(None, "SGD steps per client and round, E.", ge=1)
    rounds: int = _key(200, "Rounds at most.", ge=1)
    target_loss: float = _key(0.0, "A run ends once its loss is this low; 0 means never.", ge=0)
    patience: int = _key(1, "Consecutive evaluations at the target before a run ends.", ge=1)
    max_time_s: float = _key(
        math.inf, "A run ends with the round that exceeds it.", gt=0, allow_inf_nan=True
    )
    max_energy_j: float = _key(
        math.inf, "A run ends with the round that exceeds it.", gt=0, allow_inf_nan=True
    )
    seeds: int = _key(1, "Runs, each with a seed of its own.", ge=1)
    first_seed: int = _key(0, "Seed of the first run; each further run adds 1.", ge=0, le=MAX_SEED)
    evaluate_every: int = _key(1, "Rounds between evaluations; always 1 near the target.", ge=1)
    evaluate_subset: int | None = _key(
        None, "Samples per evaluation, by default all; near the target always all.", ge=1
    )

    @property
    def law(self) -> str:
        """Who trains when, if training keeps to one setting."""
        return self.participation or Uniform.law

    @property
    def every_seed(self) -> range:
        """The seeds of all runs."""
        return range(self.first_seed, self.first_seed + self.seeds)


class FleetTable(Table):
    """`[fleet]`: the devices; client k has row k. Without it there are no seconds and no joules.

    A fleet.csv, or means and standard deviations to draw one device per client from.
    """

    file: str | None = _key(None, "A fleet.csv, instead of the other keys of this table.")
    step_time_s: float | None = _drawn(None, "Mean seconds of a local step.", gt=0)
    step_time_sd_s: float = _drawn(0.0, "Its standard deviation.", ge=0)
    comm_time_s: float | None = _drawn(None, "Mean seconds of a model exchange.", ge=0)
    comm_time_sd_s: float = _drawn(0.0, "Its standard deviation.", ge=0)
    step_energy_j: float = _drawn(0.0, "Mean joules of a local step.", ge=0)
    step_energy_sd_j: float = _drawn(0.0, "Its standard deviation.", ge=0)
    comm_energy_j: float = _drawn(0.0, "Mean joules of a model exchange.", ge=0)
    comm_energy_sd_j: float = _drawn(0.0, "Its standard deviation.", ge=0)
    distribution: Literal["normal", "lognormal"] = _drawn(
        "normal",
        "`normal` (drawn again until positive) or `lognormal` (the heavy tail of real stragglers).",
    )
    fleet_seed: int = _drawn(0, "Seed of the draw.", ge=0, le=MAX_SEED)


class _ObjectiveTable(Table):
    """`[objective]`: what the plan minimises, and its limits."""

    energy_weight: float | None = _key(
        None,
        "Weight of a joule relative to a second, from 0 (only time, the default) to 1 (only "
        "energy); or give prices.",
        ge=0,
        le=1,
    )


if TYPE_CHECKING:
    ObjectiveTable = _ObjectiveTable
else:
    ObjectiveTable = create_model(
        "ObjectiveTable",
        __base__=_ObjectiveTable,
        __doc__=_ObjectiveTable.__doc__,
        **{name: (float, _key(0.0, price.text, ge=0)) for name, price in PRICES.items()},
        **{
            name: (limit.kind | None, _key(None, limit.text, **_ABOVE_ZERO[limit.kind]))
            for name, limit in STUDY_LIMITS.items()
        },
    )


class PlanningTable(Table):
    """`[planning]`: how `fedplan run` gets from the first round to the target."""

    course: _Course | None = _key(
        None,
        f"`{ONLINE}`: start at once, learn from the rounds, re-plan; `{FIXED}`: one setting of the "
        f"given participation, by default turns; `{PAPER}`: the paper's procedure, with pilots of "
        "given pairs and two losses; published rules, for comparison: "
        f"{', '.join(f'`{name}`' for name in PUBLISHED)}. By default `{ONLINE}`, or `{FIXED}` if "
        "participation is given.",
    )
    earlier_runs: Literal["use", "ignore"] = _key(
        "use",
        f"For the {ONLINE} course: `use` what stored runs of the same task, on any devices, say "
        "about local steps, or `ignore` it.",
        only=("course", (None, ONLINE)),
    )
    saturation: list[float] | None = _key(
        None,
        f"For the {ONLINE} course: the range [low, high] of the local steps at which half of what "
        "steps can save has been saved. Earlier runs are then ignored.",
        only=("course", (None, ONLINE)),
    )
    pilots: Literal["paper"] | None = _key(None, f"`paper` is a synonym for course = {PAPER}.")
    pairs: list[list[int]] | None = _key(
        None, "For the paper's procedure: the pairs [K, E] to try."
    )
    upper_loss: float | None = _key(
        None, "For the paper's procedure: the loss at which a pilot's rounds begin to count.", gt=0
    )
    lower_loss: float | None = _key(
        None, "For the paper's procedure: the loss at which a pilot ends.", gt=0
    )
    pilot_seed: int = _key(
        1_000_000, "Seed of the first pilot; training uses others.", ge=0, le=MAX_SEED
    )


TABLES: dict[str, type[Table]] = {
    "task": TaskTable,
    "training": TrainingTable,
    "fleet": FleetTable,
    "objective": ObjectiveTable,
    "planning": PlanningTable,
}


class Key(NamedTuple):
    """One key of a study file; `only` names another key and the values that this one requires."""

    table: str
    text: str
    default: Any
    required: bool
    only: tuple[str, tuple[Any, ...]] | None


def _described(table: str, field: FieldInfo) -> Key:
    extra: Any = field.json_schema_extra
    default, required = field.get_default(), field.is_required()
    return Key(table, field.description or "", default, required, extra["only"])


KEYS = {
    kebab(name): _described(table, field)
    for table, model in TABLES.items()
    for name, field in model.model_fields.items()
}
