"""Which method to use on a data set: the best calibrated one, by a measure of choice, that loses no F1, in words."""

from benchmark.recommendation.advice import Recommendation, recommend, rule_in_words
from benchmark.recommendation.deciding import DECIDING_MEASURES

__all__ = ["DECIDING_MEASURES", "Recommendation", "recommend", "rule_in_words"]
