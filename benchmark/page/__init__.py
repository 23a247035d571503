"""A profile's results as one HTML page: what was run, the claims, the tables, reliability diagrams."""

from benchmark.page.rendering import to_page

__all__ = ["to_page"]
