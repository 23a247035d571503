"""What holds of a whole result as of its outline: what belongs together, which views there are or could be."""

from collections.abc import Iterable, Sequence
from typing import Any

from benchmark.specs import RESAMPLED, McDropout, RunSpec, ViewSpec, identity

# What every view has. Measures that came later may be missing.
_SCORES = frozenset({"accuracy", "precision", "recall", "f1", "ece", "top_label_ece", "adaptive_ece", "brier", "nll"})


def has_measures(view: Any, measures: frozenset[str]) -> bool:
    """Whether a view, or its outline, has all these measures, and on its resamples those that are resampled."""
    needed = measures.intersection(RESAMPLED) if view.resampled else frozenset()
    return measures <= view.scores.keys() and (not needed or needed <= set(view.resampled.measures))


class ResultLike:
    """Mixed into a result and its outline, whose fields, as far as both have them, bear the same names."""

    views: Sequence[Any]
    logits: Any
    run_id: str
    run: RunSpec
    status: str
    data: Any
    encoder: Any
    training: Any
    failure: Any

    def check(self) -> None:
        """Raises ValueError where the parts do not belong together."""
        if self.run_id != identity(self.run):
            raise ValueError("run_id is not the identity of the run")
        if self.status == "success" and not (self.data and self.encoder and self.training):
            raise ValueError("a successful result has data, encoder and training")
        if (self.status == "failed") != (self.failure is not None):
            raise ValueError("a failure belongs to a failed result, and only there")
        if lacking := {name for view in self.views for name in _SCORES - view.scores.keys()}:
            raise ValueError(f"a view has no score {min(lacking)}")
        if self.data and (self.data.dataset, self.data.fingerprint) != (
            self.run.data.dataset,
            self.run.data.fingerprint,
        ):
            raise ValueError("the data are not those of the run")
        trained = self.run.encoder
        if self.encoder and (self.encoder.encoder, self.encoder.fingerprint) != (trained.encoder, trained.fingerprint):
            raise ValueError("the encoder is not that of the run")

    def unscored(self, specs: Iterable[ViewSpec], measures: frozenset[str] = frozenset()) -> list[ViewSpec]:
        """Those of the views that were not scored, or before there was one of the measures."""
        made = {view.view_id for view in self.views if has_measures(view, measures)}
        return [spec for spec in specs if identity(spec) not in made]

    def scorable(self, specs: Iterable[ViewSpec]) -> list[ViewSpec]:
        """Those of the views for which the run's own logits hold what it takes."""
        held = self.logits.mc_dropout if self.logits else []
        return [spec for spec in specs if not isinstance(spec.calibrator, McDropout) or spec.calibrator.passes in held]
