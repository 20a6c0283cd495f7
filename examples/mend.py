"""Find a slice, have its like count more in training, and see on rows kept apart whether that helped."""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import errata


class People:
    """A habit goes with the truth in a share of the rows; a model sees both, and so does somebody else."""

    def __init__(self, n: int, seed: int, together: float):
        rng = np.random.default_rng(seed)
        self.truth = rng.integers(2, size=n)
        self.habit = np.where(rng.random(n) < together, self.truth, 1 - self.truth)
        shown = np.zeros((n, 8))
        shown[:, 0], shown[:, 1] = 1.2 * self.truth, 2.5 * self.habit
        self.seen, self.described = shown + rng.normal(size=(n, 8)), shown + rng.normal(size=(n, 8))
        self.ids = np.arange(n) + 100_000 * seed

    def under(self, model: LogisticRegression) -> errata.Evaluation:
        return errata.Evaluation(
            labels=self.truth, probs=model.predict_proba(self.seen), ids=self.ids,
            representations={"described": self.described},
            sources={"described": errata.Source(from_model=False)},  # it does not contain the model's prediction
        )  # fmt: skip


learnt, new = People(8000, seed=0, together=0.9), People(8000, seed=1, together=0.5)
model = LogisticRegression().fit(learnt.seen, learnt.truth)  # takes the short cut that fails on the new rows
audited, apart = errata.hold_out(new.under(model), share=0.4)

audit = errata.audit(audited, methods=["directions"])
for found in audit.confirmed:
    share = (new.habit != new.truth)[audited.row_ids[found.members] - new.ids[0]].mean()
    sys.stdout.write(f"{found.name}: {share:.0%} of it are rows whose habit misleads\n")

train = learnt.under(model)
plan = errata.plan_weights(audit, train, factor=4)
sys.stdout.write(f"{plan.why}\n")
mended, comparison = errata.correct(
    audit,
    plan,
    train=lambda plan: LogisticRegression().fit(learnt.seen, learnt.truth, sample_weight=plan.weights_of(train)),
    measured=lambda mended: new.under(mended).rows(np.isin(new.ids, apart.ids)),
    before=apart,
)
for change in comparison.changes:
    rates = f"{change.before_rate:.3f} to {change.after_rate:.3f}"
    sys.stdout.write(f"{change.id}: error rate {rates} of {change.n} rows, {change.judgement}\n")
