"""From series to pictures. Imports matplotlib, so it is itself imported only where something is drawn."""

from benchmark.figures.drawing.confidence import draw_confidence, draw_reliability
from benchmark.figures.drawing.files import save_figure
from benchmark.figures.drawing.fonts import Lettering
from benchmark.figures.drawing.labels import draw_labels
from benchmark.figures.drawing.noise import draw_noise
from benchmark.figures.drawing.scatter import draw_scatter
from benchmark.figures.drawing.style import Styles, house_style
from benchmark.figures.drawing.training import draw_training

__all__ = [
    "Lettering",
    "Styles",
    "draw_confidence",
    "draw_labels",
    "draw_noise",
    "draw_reliability",
    "draw_scatter",
    "draw_training",
    "house_style",
    "save_figure",
]
