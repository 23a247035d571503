"""Figures from the results at hand: series of numbers, and the pictures drawn from them."""

from benchmark.figures.making import draw_figures

__all__ = ["draw_figures"]
