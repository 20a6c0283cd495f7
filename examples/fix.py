"""Find a slice, count its rows more often in training, and see on held-out rows whether that helped."""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import errata


class People:
    """A habit goes with the truth in a share of the rows; the model sees both, and so does another description."""

    def __init__(self, n: int, seed: int, together: float):
        rng = np.random.default_rng(seed)
        self.truth = rng.integers(2, size=n)
        self.habit = np.where(rng.random(n) < together, self.truth, 1 - self.truth)
        signal = np.zeros((n, 8))
        signal[:, 0] = 1.2 * self.truth
        signal[:, 1] = 2.5 * self.habit
        self.features = signal + rng.normal(size=(n, 8))
        self.description = signal + rng.normal(size=(n, 8))
        self.ids = np.arange(n) + 100_000 * seed

    def evaluate(self, model: LogisticRegression) -> errata.Evaluation:
        """What a model does on these rows."""
        return errata.Evaluation(
            labels=self.truth,
            probs=model.predict_proba(self.features),
            ids=self.ids,
            representations={"description": self.description},
            sources={"description": errata.Source(from_model=False)},  # it does not contain the model's prediction
        )


training = People(8000, seed=0, together=0.9)
new = People(8000, seed=1, together=0.5)
model = LogisticRegression().fit(training.features, training.truth)  # takes the shortcut, which fails on the new rows
audited, held_out = errata.hold_out(new.evaluate(model), share=0.4)

audit = errata.audit(audited, methods=["directions"])
for slice_ in audit.confirmed:
    share = (new.habit != new.truth)[audited.row_ids[slice_.members] - new.ids[0]].mean()
    sys.stdout.write(f"{slice_.name}: {share:.0%} of it are rows whose habit misleads\n")

train = training.evaluate(model)
plan = errata.plan_weights(audit, train, factor=4)
sys.stdout.write(f"{plan.why}\n")


def fit(plan: errata.Plan) -> LogisticRegression:
    return LogisticRegression().fit(training.features, training.truth, sample_weight=plan.weights_of(train))


def measure(fixed: LogisticRegression) -> errata.Evaluation:
    return new.evaluate(fixed).rows(np.isin(new.ids, held_out.ids))


fixed, comparison = errata.correct(audit, plan, train=fit, measured=measure, before=held_out)
for change in comparison.changes:
    rates = f"{change.before_rate:.3f} to {change.after_rate:.3f}"
    sys.stdout.write(f"{change.id}: error rate {rates} of {change.n} rows, {change.judgement}\n")
