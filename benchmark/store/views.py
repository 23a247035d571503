"""Which views a result has, and which its logits allow: the same for a whole result and its outline."""

from collections.abc import Iterable, Sequence
from typing import Any

from benchmark.specs import McDropout, ViewSpec, identity


class HasViews:
    """Mixed into what has ``views`` with a ``view_id`` each, and a record of logits or none."""

    views: Sequence[Any]
    logits: Any

    def unscored(self, specs: Iterable[ViewSpec]) -> list[ViewSpec]:
        """Those of the views whose scores were not made."""
        made = {view.view_id for view in self.views}
        return [spec for spec in specs if identity(spec) not in made]

    def scorable(self, specs: Iterable[ViewSpec]) -> list[ViewSpec]:
        """Those of the views for which the run's own logits hold what it takes."""
        held = self.logits.mc_dropout if self.logits else []
        return [spec for spec in specs if not isinstance(spec.calibrator, McDropout) or spec.calibrator.passes in held]
