"""What the words of the pages mean, one line each."""

from __future__ import annotations

GLOSSARY = (
    ("Slice", "a group of rows that a rule or a method tells without reading whether the model is right"),
    ("Search rows, held-out rows", "slices are found on the first and measured on the second, which nobody searched"),
    ("The rest", "the held-out rows outside the slice that it is compared with"),
    ("Gap", "the error rate of the slice less that of the rest, in points"),
    ("Interval", "where the true number lies, with the chance that is stated; those of slices hold for all together"),
    ("Confirmed", "on held-out rows the slice is worse than the rest by more than a margin, beyond chance"),
    (
        "Not confirmed",
        "it looked worse on search rows; held-out rows do not show it, or not by more than the margin",
    ),
    ("Too few to tell", "it has too few held-out rows to show even a large gap"),
    ("Excess errors", "errors beyond those that the rate of the rest would give"),
    (
        "Covers, precise",
        "of a description: members that it matches, of all; matches that are members, of all",
    ),
    ("Weak name", "it fits less than half of the members, or more than a third of what it fits lies elsewhere"),
    ("Confidence", "the largest probability that the model gives a class of a row"),
    ("Coherence", "how alike the members are, 0 to 1; it says nothing about the gap"),
    ("Approximation", "a slice that is told without the outcome, in place of one that reads it"),
    ("Error type", "a group that a method made of the errors themselves; no rate is claimed of it"),
    ("As found, as people left it", "the rows that were tested, and those after people merged slices or moved rows"),
    (
        "Regression to the mean",
        "rows that confirmed a slice show it worse than it is; another model looks better on them",
    ),
    ("Fixed, newly wrong", "wrong before and right after, and the other way round"),
    ("Gate", "what fails a build: a slice that got worse, or one that is confirmed"),
    ("Margin (delta)", "how much worse than the rest a slice must be to be confirmed"),
    ("q", "the share of false findings to expect among all slices with a value as small; it decides nothing"),
    ("Kappa", "how often two people agree beyond chance: 1 always, 0 as often as by chance"),
)
