"""Placing runs on the nodes of a Ray cluster. Only the modules ``connection`` and ``workers`` import Ray."""
