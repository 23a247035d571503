"""Training settings for data of the user's own, from the number and the length of its rows."""

import math
from typing import Any

from benchmark.declarations import Encoder

# Batches small enough, and epochs enough, that a model has learnt its labels before methods are compared: about the
# 828 steps of the profile "small", with fewer rows a step where there are few.
_STEPS = 800
_BATCHES = ((2_000, 32), (8_000, 64))  # below so many training rows, that batch
_LARGEST_BATCH = 256
_FEWEST_EPOCHS, _MOST_EPOCHS = 10, 40
_WIDE, _RATE_WIDE, _RATE_NARROW = 768, 4e-5, 3e-4  # encoders of that width learn at the paper's rate
_LONGEST = 512
# The rate hardly falls with the batch. Measured with batches of 32, three layers, BERT, one seed: on 1,000 rows of
# BANKING77 the validation rows' NLL is 1.30, 0.91 and 0.99 at 1.1e-4 (the square root of the batch's share), 2.2e-4 and
# 4.4e-4; on 734 generated rows of 150 labels 1.03, 0.21 and 0.02. At the lowest the model is left far under-confident.
_POWER_OF_BATCH = 0.15


def estimated_tokens(text: str) -> float:
    """About how many tokens a text has: a word of plain letters a little more than one, other letters one each."""
    plain = sum(ord(letter) < 0x250 for letter in text)
    return 2 + plain / 4.5 + (len(text) - plain) * 0.8


def fitting_settings(rows: int, long_text: float, encoder: Encoder) -> dict[str, Any]:
    """The settings of a training rule, as plain values, for so many training rows, of which next to none has more than
    ``long_text`` tokens.
    """
    batch = next((size for below, size in _BATCHES if rows < below), _LARGEST_BATCH)
    steps_per_epoch = math.ceil(rows / batch)
    rate = _RATE_WIDE if encoder.size.hidden >= _WIDE else _RATE_NARROW
    return {
        "batch_size": batch,
        "epochs": min(max(math.ceil(_STEPS / steps_per_epoch), _FEWEST_EPOCHS), _MOST_EPOCHS),
        "learning_rate": float(f"{rate * (batch / _LARGEST_BATCH) ** _POWER_OF_BATCH:.1e}"),
        "weight_decay": 0.05,
        "max_length": min(max(64, 16 * math.ceil(1.3 * long_text / 16)), _LONGEST),
        "betas": [0.9, 0.999],
        "epsilon": 1e-8,
        "warmup_share": 0.1,
        "decay": "linear",
        "max_gradient_norm": 1.0,
        "precision": "auto",
    }
