"""From a place in a table (data set, corruption, encoder role, method) to the run and the view that stand behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmark.declarations import Profile, TrainingRule
from benchmark.errors import UserError
from benchmark.registry.contents import Registry
from benchmark.specs import (
    SCORING_VERSION,
    TRAINING_VERSION,
    Calibrator,
    DataSpec,
    EncoderSpec,
    Head,
    LossTerm,
    Optimisation,
    RunSpec,
    ViewSpec,
    earliest_start,
    term_name,
)


@dataclass(frozen=True)
class Subject:
    """What a cell looks at, in the words of the tables: names of roles, not of registry entries."""

    dataset: str
    encoder: str
    method: str
    corruption: float = 0.0


@dataclass(frozen=True)
class Inputs:
    """The content, as far as it is known here, of data sets and encoders by their registry names."""

    datasets: Mapping[str, str | None] = field(default_factory=dict)
    encoders: Mapping[str, str | None] = field(default_factory=dict)


def encoder_name(profile: Profile, dataset: str, role: str) -> str | None:
    """The registry name of the encoder that plays a role for a data set, given by its own role."""
    choice = profile.encoders.get(role)
    return choice.get(dataset) if isinstance(choice, dict) else choice


def resolve_run(registry: Registry, profile_name: str, subject: Subject, seed: int, inputs: Inputs) -> RunSpec:
    """The whole run behind a subject in a profile, every setting written out.

    Raises UserError where the profile's training rules leave a setting open, or where a term could never join.
    """
    profile = registry.profile(profile_name)
    head, loss = composition(registry, subject.method)
    dataset, encoder = profile.datasets[subject.dataset], encoder_name(profile, subject.dataset, subject.encoder)
    assert encoder is not None, f"{subject} is not offered by {profile_name}"
    settings = _training_settings(registry, profile_name, subject)
    max_length = settings.pop("max_length")
    for term in loss:
        if (start := earliest_start(term)) >= settings["epochs"]:
            raise UserError(
                f"Profile {profile_name} trains {subject.method} on {subject.dataset} for {settings['epochs']} epochs, "
                f"and its term {term_name(term)} joins after {start} at the earliest, so never; give it more epochs or "
                "an earlier start."
            )
    return RunSpec.model_validate(
        {
            "training_version": TRAINING_VERSION,
            "data": DataSpec(
                dataset=dataset, fingerprint=inputs.datasets.get(dataset), corruption=float(subject.corruption)
            ),
            "encoder": EncoderSpec(
                encoder=encoder,
                fingerprint=inputs.encoders.get(encoder),
                layers=registry.encoders[encoder].layers,
                max_length=max_length,
            ),
            "head": head,
            "loss": loss,
            "optimisation": Optimisation.model_validate(settings),
            "seed": seed,
        }
    )


def run_if_whole(registry: Registry, profile_name: str, subject: Subject, seed: int, inputs: Inputs) -> RunSpec | None:
    """The run as ``resolve_run`` gives it; None where its settings are not whole or do not go together."""
    try:
        return resolve_run(registry, profile_name, subject, seed, inputs)
    except UserError:
        return None


def method_view(registry: Registry, method: str) -> ViewSpec:
    """A method's view of its runs: test rows, its post-hoc calibrator, the registry's scoring settings."""
    return ViewSpec.model_validate(
        {
            "scoring_version": SCORING_VERSION,
            "split": "test",
            "calibrator": calibrator_of(registry, method),
            "ece_bins": registry.scoring.ece_bins,
            "resamples": registry.scoring.resamples,
            "rare_labels": registry.scoring.rare_labels,
        }
    )


def validation_view(registry: Registry) -> ViewSpec:
    """The view of every run's validation rows, which settings are chosen by: without calibrator and resamples."""
    return ViewSpec(
        scoring_version=SCORING_VERSION,
        split="validation",
        calibrator=None,
        ece_bins=registry.scoring.ece_bins,
        resamples=0,
        rare_labels=0,
    )


def is_offered(profile: Profile, subject: Subject) -> bool:
    """Whether the profile has the subject's data set, and for it an encoder of that role."""
    return subject.dataset in profile.datasets and encoder_name(profile, subject.dataset, subject.encoder) is not None


def calibrator_of(registry: Registry, method: str) -> Calibrator | None:
    """A method's calibrator; None where it has none."""
    posthoc = registry.methods.methods[method].posthoc
    return None if posthoc is None else registry.methods.calibrators[posthoc]


def composition(registry: Registry, method: str) -> tuple[Head, tuple[LossTerm, ...]]:
    """What of a method is trained: its head and loss terms, whatever their names; methods that differ in a calibrator
    only have the same.
    """
    declared = registry.methods.methods[method]
    return registry.methods.heads[declared.head], tuple(registry.methods.losses[name] for name in declared.loss)


def methods_of(registry: Registry, run: RunSpec, view: ViewSpec) -> str:
    """The methods that a view of a run belongs to, by name: those with its head, loss terms and calibrator. None where
    the view was scored by other settings than the registry now has.
    """
    trained = (run.head, run.loss)
    return " ".join(
        name
        for name in registry.methods.methods
        if composition(registry, name) == trained and _is_view_of(registry, name, view)
    )


def _is_view_of(registry: Registry, method: str, view: ViewSpec) -> bool:
    if view.split == "validation":  # whose rows a calibrator is fitted on, so its method has no view of them
        return calibrator_of(registry, method) is None and view == validation_view(registry)
    return view == method_view(registry, method)


def _training_settings(registry: Registry, profile_name: str, subject: Subject) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for rule in registry.profile(profile_name).training:
        if _holds(registry, rule, subject):
            settings |= {
                name: value
                for name in rule.model_fields_set - TrainingRule.conditions
                if (value := getattr(rule, name)) is not None
            }
    missing = sorted(({"max_length"} | Optimisation.model_fields.keys()) - settings.keys())
    if missing:
        raise UserError(
            f"profiles.{profile_name}.training gives no {', '.join(missing)} for "
            f"{subject.method} on {subject.dataset} with encoder {subject.encoder}; add it to a rule that holds there."
        )
    if settings["max_gradient_norm"] == "none":
        settings["max_gradient_norm"] = None
    return settings


def _holds(registry: Registry, rule: TrainingRule, subject: Subject) -> bool:
    # a rule for a method holds for its calibrated form, too, which is the same training; by the names of head and
    # losses, so that a search that varies a loss does not turn one method into another
    methods = registry.methods.methods
    if rule.method is not None:
        named, looked_at = methods[rule.method], methods[subject.method]
        if (named.head, named.loss) != (looked_at.head, looked_at.loss):
            return False
    return all(getattr(rule, name) in (None, getattr(subject, name)) for name in TrainingRule.conditions - {"method"})
