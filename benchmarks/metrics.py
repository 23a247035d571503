"""Class-wise ECE of many rows and labels: ours beside torchmetrics, called once a label as its users must.

python benchmarks/metrics.py                 # 1,000,000 rows, 150 labels; torchmetrics on 5 labels, times 30
"""

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmark.metrics import classwise_ece


def main() -> None:
    """Print seconds, their ratio and the largest difference between the two."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=150)
    parser.add_argument("--compared", type=int, default=5, help="labels that torchmetrics is timed on")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    probabilities = generator.random((arguments.rows, arguments.labels))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    labels = generator.integers(0, arguments.labels, size=arguments.rows)
    ours, theirs = [], []
    for _ in range(arguments.repeats):
        started = time.perf_counter()
        errors = classwise_ece(probabilities, labels, 10)
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        others = [
            _torchmetrics(np.ascontiguousarray(probabilities[:, label]), labels == label)
            for label in range(arguments.compared)
        ]
        theirs.append((time.perf_counter() - started) * arguments.labels / arguments.compared)
    difference = max(abs(error - other) for error, other in zip(errors, others, strict=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"ours: {statistics.median(ours):.1f} s; torchmetrics, from {arguments.compared} labels: ", end="")
    print(f"{statistics.median(theirs):.1f} s, {ratio:.1f} times ours; largest difference {difference:.1e}; ", end="")
    print(f"peak {peak:.1f} GiB with {probabilities.nbytes / 2**30:.1f} GiB of probabilities")


def _torchmetrics(probability: np.ndarray, right: np.ndarray) -> float:
    """|mean(y) - mean(p)| in ten bins of a label's probability, weighted: the error of a binary "confidence"."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return float(binary_calibration_error(torch.from_numpy(probability), torch.from_numpy(right).long(), n_bins=10))


if __name__ == "__main__":
    main()
