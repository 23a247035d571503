"""One declared figure at a time: its series, its words, its picture. Imports matplotlib."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from matplotlib.figure import Figure as Picture

from benchmark.declarations.figures import (
    AnyFigure,
    ConfidenceFigure,
    F1AgainstEceFigure,
    NoiseFigure,
    PerLabelFigure,
    ReliabilityFigure,
    TrainingFigure,
)
from benchmark.figures.drawing import (
    Lettering,
    Styles,
    draw_confidence,
    draw_labels,
    draw_noise,
    draw_reliability,
    draw_scatter,
    draw_training,
    house_style,
)
from benchmark.figures.series import (
    MethodResults,
    ScatterPanel,
    Source,
    fewer_seeds,
    label_series,
    noise_series,
    reliability_series,
    scatter_panels,
    training_courses,
)
from benchmark.figures.words import Words, missing_sentence
from benchmark.registry import Inputs, Registry, encoder_name, narrow
from benchmark.store import KnownResults, Result
from benchmark.tables import GridBuilder, as_sentence, seeds_in_words

_OnOneDataset = ConfidenceFigure | ReliabilityFigure | NoiseFigure | PerLabelFigure | TrainingFigure

_ABOUT_ECE = "ECE is class-wise and summed over labels, as in the tables."
_ABOUT_SPREAD = "Mean and sample standard deviation over"


class Composer:
    """Draws the figures of one profile from the results at hand."""

    def __init__(
        self,
        registry: Registry,
        profile_name: str,
        finished: KnownResults[Result],
        inputs: Inputs,
        seeds: Sequence[int],
    ) -> None:
        self.registry = registry
        self.profile_name = profile_name
        self.profile = registry.profile(profile_name)
        self.grids = GridBuilder(registry, profile_name, finished, inputs, seeds)
        self.styles = Styles(registry.methods.methods)
        self.lettering = Lettering(self._texts(finished))
        labels = {name: self.lettering.text(label, name) for name, label in registry.method_labels.items()}
        self.source = Source(self.grids.finder, tuple(seeds), labels)

    def house_style(self) -> AbstractContextManager[None]:
        """The settings of matplotlib under which the figures are to be drawn and saved."""
        return house_style(self.lettering.families)

    def complaints(self) -> list[str]:
        """What stood in the way of drawing as declared."""
        return [] if self.lettering.complaint is None else [self.lettering.complaint]

    def draw(self, figure: AnyFigure, dataset: str) -> Picture | str | None:
        """The picture of one figure (``dataset``: a role), or half a sentence that says why there is none; None where
        the profile has nothing of what it is about.
        """
        if isinstance(figure, F1AgainstEceFigure):
            return self._scatter(figure)
        if dataset not in self.profile.datasets:
            return None
        if isinstance(figure, NoiseFigure):
            return self._noise(figure, dataset)
        declared = [figure.method] if isinstance(figure, ConfidenceFigure) else figure.methods
        names = [name for name in declared if name in self._compared(dataset)]
        if not names:
            return f"no table compares its methods on {dataset}"
        all_methods = self.source.methods(dataset, figure.encoder, names)
        found = [item for item in all_methods if item.scored]
        if not found:
            return next((item.why_missing for item in all_methods if item.why_missing), "no result")
        missing = [f"{item.label} ({item.why_missing})" for item in all_methods if not item.scored]
        about = missing_sentence(missing, fewer_seeds((item.label, item.seeds) for item in found))
        if isinstance(figure, ConfidenceFigure | ReliabilityFigure):
            return self._reliability(figure, dataset, found, about)
        if isinstance(figure, PerLabelFigure):
            return self._labels(figure, dataset, found, about)
        return self._training(figure, dataset, found, about)

    def _compared(self, dataset: str) -> set[str]:
        """The methods that any table has a row for where it looks at this data set: of others nothing is missing."""
        tables = [
            table
            for table in self.registry.tables.values()
            if any(column.dataset == dataset for column in table.columns)
        ]
        return {row.method for table in tables for row in table.every_row}

    def _reliability(
        self, figure: ConfidenceFigure | ReliabilityFigure, dataset: str, found: list[MethodResults], about: str
    ) -> Picture:
        series = [reliability_series(item, self.registry.scoring.ece_bins) for item in found]
        sentences = (
            f"Predicted label's confidence on the test rows in {len(series[0].bins.count)} bins.",
            f"{_ABOUT_ECE} Top-label ECE is the mean gap weighted by rows, seed by seed.",
            seeds_in_words(_seeds(found), "Bins pooled and scores averaged (± sample standard deviation) over"),
            about,
        )
        words = self._words(figure, dataset, *sentences)
        if isinstance(figure, ConfidenceFigure):
            return draw_confidence(series[0], words)
        return draw_reliability(series, words)

    def _labels(self, figure: PerLabelFigure, dataset: str, found: list[MethodResults], about: str) -> Picture:
        series = label_series(found)
        names = self._shown_names(self.profile.datasets[dataset])
        series = replace(series, names=tuple(names.get(name, name) for name in series.names))
        shown = len(series.names)
        cut = f"The {shown} rarest of {series.n_labels} labels." if shown < series.n_labels else ""
        words = self._words(figure, dataset, cut, seeds_in_words(_seeds(found), "Mean over"), about)
        return draw_labels(series, self.lettering, self.styles, words)

    def _training(self, figure: TrainingFigure, dataset: str, found: list[MethodResults], about: str) -> Picture:
        words = self._words(
            figure,
            dataset,
            "Means over the training rows of an epoch, dropout on; terms before their weights.",
            seeds_in_words(_seeds(found), "A line for each of"),
            about,
        )
        return draw_training([training_courses(item) for item in found], words)

    def _noise(self, figure: NoiseFigure, dataset: str) -> Picture | str:
        series = noise_series(self.source, dataset, figure.encoder, figure.methods, figure.levels)
        if isinstance(series, str):
            return series
        about = missing_sentence(series.missing, series.partial)
        spread = seeds_in_words(series.seeds, _ABOUT_SPREAD)
        aside = "Methods stand side by side at each level." if len(series.seeds) > 1 else ""
        words = self._words(figure, dataset, _ABOUT_ECE, spread, aside, about)
        return draw_noise(series, self.styles, words)

    def _scatter(self, figure: F1AgainstEceFigure) -> Picture | str | None:
        table = narrow(self.registry.tables[figure.table], self.profile, None, None)
        if table is None:
            return None
        panels = scatter_panels(self.grids.build(figure.table, table), table)
        titles = {panel.dataset: self._dataset_label(panel.dataset) for panel in panels}
        shown = [self._relabelled(panel) for panel in panels if panel.points]
        if not shown:
            return "no result"
        points = [(point, titles[panel.dataset]) for panel in shown for point in panel.points]
        missing = [f"{titles[panel.dataset]}: {row}" for panel in panels for row in panel.missing]
        partial = fewer_seeds((f"{point.label} on {title}", point.seeds) for point, title in points)
        with_paper = any(point.paper for point, _ in points)
        sentences = (
            _ABOUT_ECE,
            "The paper's numbers are those of its own data, encoders and seeds." if with_paper else "",
            seeds_in_words(sorted({seed for point, _ in points for seed in point.seeds}), _ABOUT_SPREAD),
            missing_sentence(missing, partial),
        )
        return draw_scatter(shown, titles, self.styles, Words("F1 against ECE", self._sentences(figure, *sentences)))

    def _relabelled(self, panel: ScatterPanel) -> ScatterPanel:
        """The panel with labels that can be drawn."""
        labels = [self.lettering.text(point.label, point.key) for point in panel.points]
        points = (replace(point, label=label) for point, label in zip(panel.points, labels, strict=True))
        return replace(panel, points=tuple(points))

    def _words(self, figure: _OnOneDataset, dataset: str, *sentences: str) -> Words:
        encoder = encoder_name(self.profile, dataset, figure.encoder)
        assert encoder is not None, "a figure with results has an encoder"
        encoder_label = self.lettering.text(self.registry.encoders[encoder].label, encoder)
        return Words(f"{self._dataset_label(dataset)}, {encoder_label}", self._sentences(figure, *sentences))

    def _sentences(self, figure: AnyFigure, *sentences: str) -> tuple[str, ...]:
        """The caption, then the figure's own sentences, then what the profile wants to be known."""
        said = (as_sentence(figure.caption), *sentences, self.profile.note or "")
        return tuple(self.lettering.text(sentence, "") for sentence in said)

    def _dataset_label(self, role: str) -> str:
        return self.lettering.text(self.registry.dataset_label(self.profile, role), role)

    def _shown_names(self, dataset: str) -> dict[str, str]:
        """What to call labels whose names in the files are mere ids."""
        declared = self.registry.datasets[dataset].labels
        return {} if declared == "sorted" else declared

    def _texts(self, finished: KnownResults[Result]) -> list[str]:
        """All texts that may be drawn and whose letters are somebody else's choice."""
        registry = self.registry
        texts = [dataset.label for dataset in registry.datasets.values()]
        texts += [name for dataset in registry.datasets for name in self._shown_names(dataset).values()]
        texts += [encoder.label for encoder in registry.encoders.values()]
        texts += [method.label for method in registry.methods.methods.values()]
        texts += [figure.caption for figure in registry.figures.values()]
        texts += [self.profile.note or ""]
        texts += [row.label or "" for table in registry.tables.values() for row in table.every_row]
        for result in finished.by_run.values():
            texts += result.data.label_names if result.data else []
        return texts


def _seeds(found: Sequence[MethodResults]) -> list[int]:
    return sorted({seed for item in found for seed in item.seeds})
