"""Times as a person says them."""


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3 h 05 min``; never less than a second."""
    if round(seconds) < 100:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
