"""From results to what a figure shows, as plain numbers. Draws nothing."""

from benchmark.figures.series.collecting import MethodResults, Source, fewer_seeds
from benchmark.figures.series.labels import LabelSeries, label_series
from benchmark.figures.series.noise import NoiseLine, NoiseSeries, noise_series
from benchmark.figures.series.reliability import (
    Bins,
    ReliabilitySeries,
    drawable_bins,
    pooled_bins,
    reliability_series,
)
from benchmark.figures.series.scatter import Point, ScatterPanel, scatter_panels
from benchmark.figures.series.training import Course, MethodCourses, training_courses

__all__ = [
    "Bins",
    "Course",
    "LabelSeries",
    "MethodCourses",
    "MethodResults",
    "NoiseLine",
    "NoiseSeries",
    "Point",
    "ReliabilitySeries",
    "ScatterPanel",
    "Source",
    "drawable_bins",
    "fewer_seeds",
    "label_series",
    "noise_series",
    "pooled_bins",
    "reliability_series",
    "scatter_panels",
    "training_courses",
]
