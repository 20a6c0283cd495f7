"""Barlow's questionnaire, as it is asked: `core.questionnaire` under the name that who asks people looks for."""

from ..core.questionnaire import (
    QuestionnaireAnswer,
    checked,
    cumulative,
    description_agreement,
    form,
    mean_scores,
    statement_scores,
    tally,
)

__all__ = [
    "QuestionnaireAnswer",
    "checked",
    "cumulative",
    "description_agreement",
    "form",
    "mean_scores",
    "statement_scores",
    "tally",
]
