"""Spotlight against an independent autograd version, against itself at other scales, and on planted slices."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from errata.bench.loss_problems import blobs, digits, heavy_tails, planted, surface, wide
from errata.core import Evaluation
from errata.report import to_html, to_terminal
from errata.slicers import make, restore
from errata.slicers.spotlight.choice import bounded_losses, brightest, choose_size, members_mean, sizes_to_try
from errata.slicers.spotlight.reader import Reader
from errata.slicers.spotlight.shape import Sphere, precision_for, published_ellipse, recommended_ellipse
from errata.slicers.spotlight.slicer import (
    AdamSettings,
    Schedule,
    light_value,
    published_sphere,
    recommended_sphere,
)

PROBLEMS = {
    "blobs 0/1": lambda: blobs("", 0, True),
    "blobs": lambda: blobs("", 1, False),
    "tails": heavy_tails,
    "hills": surface,
    "digits": digits,
    "wide": wide,
}


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request):
    _, X, losses = PROBLEMS[request.param]()
    return X, losses.astype(float)


def mean_loss(light, X, losses):
    k = light.weights(X)
    return float(k @ losses / k.sum()), float(k.sum())


def autograd_run(X, losses, settings, ellipse):
    """The published loop, written anew with torch: objective, backward, Adam, plateau with reset."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    x, y = torch.tensor(X), torch.tensor(losses)
    n, d = X.shape
    mu = torch.zeros(d, dtype=torch.float64, requires_grad=True)
    start = settings.initial_precision or (1e-3 if ellipse else 1e-4)
    log_tau = torch.full((d,) if ellipse else (), float(np.log(start)), dtype=torch.float64, requires_grad=True)
    axes = torch.eye(d, dtype=torch.float64).requires_grad_()
    parameters = [mu, log_tau, axes] if ellipse else [mu, log_tau]
    adam = torch.optim.Adam(parameters, lr=settings.learning_rate)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, factor=0.5, patience=settings.patience)
    rate = settings.learning_rate
    for width in np.geomspace(n - settings.size, 0.05 * settings.size, settings.steps):
        turned = (x - mu) @ axes if ellipse else x - mu
        k = torch.relu(1 - (turned**2 * torch.exp(log_tau)).sum(1))
        short = torch.relu((settings.size + width - k.sum()) / width)
        cost = -(k @ y) / k.sum() + settings.barrier * short**2
        adam.zero_grad()
        cost.backward()
        adam.step()
        if ellipse:
            with torch.no_grad():
                left, _, right = torch.linalg.svd(axes)
                axes.copy_(left @ right)
        plateau.step(cost.item())
        if adam.param_groups[0]["lr"] < rate:
            rate = adam.param_groups[0]["lr"]
            plateau.best, plateau.num_bad_epochs = float("inf"), 0
    with torch.no_grad():
        turned = (x - mu) @ axes if ellipse else x - mu
        return torch.relu(1 - (turned**2 * torch.exp(log_tau)).sum(1)).numpy(), mu.detach().numpy()


@pytest.mark.parametrize("name", ["blobs", "tails", "hills", "digits"])
def test_published_sphere_is_the_autograd_one(name):
    _, X, losses = PROBLEMS[name]()
    settings = AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, 300, None)
    k, mu = autograd_run(X, losses.astype(float), settings, ellipse=False)
    light = published_sphere(Reader(X), losses.astype(float), settings)
    np.testing.assert_allclose(light.centre, mu, atol=1e-5)
    np.testing.assert_allclose(light.weights(X), k, atol=1e-5)


def test_published_sphere_is_the_autograd_one_while_rows_are_skipped():
    """Late in a run most rows are out of reach; the trajectory must not notice."""
    _, X, losses = blobs("", 0, True)
    settings = AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, 300, 0.02)  # starts small enough for rows to be skipped
    k, mu = autograd_run(X, losses, settings, ellipse=False)
    reader = Reader(X)
    light = published_sphere(reader, losses, settings)
    assert reader.reads < 280
    np.testing.assert_allclose(light.centre, mu, atol=1e-5)
    np.testing.assert_allclose(light.weights(X), k, atol=1e-5)


def test_published_ellipse_is_the_autograd_one():
    _, X, losses = heavy_tails()
    X, losses = X[:1500, :5], losses[:1500]
    settings = AdamSettings(30.0, 1.0, 1e-2, 10, 300, None)
    k, mu = autograd_run(X, losses, settings, ellipse=True)
    light = published_ellipse(Reader(X), losses, Schedule(settings, len(X)))
    # Looser than for the sphere: the axes' slopes start at zero, where Adam takes rounding for a direction.
    np.testing.assert_allclose(light.centre, mu, atol=1e-4)
    np.testing.assert_allclose(light.weights(X), k, atol=1e-4)


def test_published_size_is_kept(problem):
    X, losses = problem
    size = 0.02 * len(X)
    light = published_sphere(Reader(X), losses, AdamSettings(size, 1.0, 1e-2, 10, 5000, None))
    assert 1.00 <= light.weights(X).sum() / size <= 1.12


def test_published_light_that_goes_out_is_kept_as_it_last_shone():
    """The published objective is 0/0 once no row is lit."""
    X = np.random.default_rng(0).normal(50, 1, (200, 3))
    light = published_sphere(Reader(X), np.ones(200), AdamSettings(4.0, 1.0, 1e-2, 10, 50, 1.0))
    assert np.isfinite(light.centre).all()
    assert np.isfinite(light.factor)


def test_recommended_is_as_bright_as_published_in_a_fifth_of_the_reads(problem):
    X, losses = problem
    published = published_sphere(Reader(X), losses, AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, 5000, None))
    bright, size = mean_loss(published, X, losses)
    reader = Reader(X)
    ours, total = mean_loss(recommended_sphere(reader, losses, size), X, losses)
    assert total == pytest.approx(size, rel=1e-6)  # compared at equal sum k
    assert ours >= 0.99 * bright
    assert reader.reads <= 1000


@pytest.mark.parametrize("change", [lambda X: 1e-3 * X, lambda X: 1e3 * X, lambda X: X + 100 * X.std()])
def test_recommended_does_not_depend_on_scale_or_shift(problem, change):
    X, losses = problem
    size = 0.02 * len(X)
    a = recommended_sphere(Reader(X), losses, size).weights(X)
    b = recommended_sphere(Reader(change(X)), losses, size).weights(change(X))
    top = [set(np.argsort(-k, kind="stable")[: round(size)]) for k in (a, b)]
    assert len(top[0] & top[1]) >= 0.98 * round(size)
    assert b @ losses / b.sum() == pytest.approx(a @ losses / a.sum(), rel=0.005)


def test_recommended_shrinks_where_the_published_light_does_not():
    """Two columns of very different size, as in raw wine: the published light ends at many times its size."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(0, 60, 1500), rng.normal(0, 0.1, 1500), rng.normal(120, 40, 1500)], axis=1)
    losses = rng.exponential(1, 1500) * (1 + (X[:, 0] > 60))
    size = 30.0
    published = published_sphere(Reader(X), losses, AdamSettings(size, 1.0, 1e-2, 10, 5000, None))
    assert published.weights(X).sum() > 2 * size
    assert recommended_sphere(Reader(X), losses, size).weights(X).sum() == pytest.approx(size, rel=1e-6)


def test_slope_of_the_light_is_that_of_finite_differences():
    rng = np.random.default_rng(1)
    X, losses = rng.normal(size=(400, 4)), rng.random(400)
    reader, mu = Reader(X), rng.normal(size=4) / 3
    _, slope = light_value(reader, losses, 40.0, mu)
    h = 1e-6
    steps = [light_value(Reader(X), losses, 40.0, mu + h * e)[0] for e in np.eye(4)]
    back = [light_value(Reader(X), losses, 40.0, mu - h * e)[0] for e in np.eye(4)]
    np.testing.assert_allclose(slope, (np.array(steps) - back) / (2 * h), rtol=1e-4, atol=1e-8)


def test_precision_solves_for_the_size():
    distances = np.array([0.0, 1.0, 2.0, 3.0])
    tau = precision_for(distances, 2.0)
    assert np.maximum(0, 1 - tau * distances).sum() == pytest.approx(2.0)
    assert tau == pytest.approx(1 / 3)  # by hand: 1 + (1 - 1/3) + (1 - 2/3) = 2


def test_precision_where_too_many_rows_lie_at_the_centre():
    tau = precision_for(np.array([0.0, 0.0, 0.0, 5.0]), 2.0)
    assert np.isfinite(tau)


def test_ellipse_is_never_dimmer_than_the_sphere():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 4)) * [1, 1, 5, 5]
    losses = (np.square(X[:, :2]).sum(1) < 0.3) + 0.1 * rng.random(2000)
    size = 60.0
    sphere = recommended_sphere(Reader(X), losses, size)
    ellipse = recommended_ellipse(Reader(X), losses, size, sphere)
    round_light, _ = mean_loss(sphere, X, losses)
    stretched, total = mean_loss(ellipse, X, losses)
    assert total == pytest.approx(size, rel=1e-6)
    assert stretched > round_light + 0.2  # the bad region is long in two of four directions


@pytest.mark.parametrize("shape", ["sphere", "ellipse"])
def test_weights_of_a_row_do_not_depend_on_the_others(shape):
    rng = np.random.default_rng(3)
    ev = Evaluation(losses=rng.random(300), representations={"e": rng.normal(size=(300, 5)).astype(np.float32)})
    slicer = make("spotlight", options={"shape": shape, "slices": 1}).fit(ev)
    whole = slicer.membership(ev)
    alone = np.concatenate([slicer.membership(ev.rows(np.array([i]))) for i in range(300)])
    np.testing.assert_array_equal(whole, alone)


def test_easy_side_finds_low_loss():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, 3))
    easy = np.minimum(np.square(X - 1).sum(1), np.square(X + 1).sum(1)) < 0.8
    losses = np.where(easy, 0.0, 1.0) + 0.01 * rng.random(1500)
    ev = Evaluation(losses=losses, representations={"e": X})
    slicer = make("spotlight", options={"side": "easy", "slices": 2}).fit(ev)
    inside = slicer.membership(ev) >= slicer.thresholds_
    assert losses[inside[:, 0]].mean() < 0.1
    assert losses[inside[:, 1]].mean() < 0.1
    assert not (inside[:, 0] & inside[:, 1]).any()  # the second is not the first again
    assert slicer.rules_[0]["side"] == "easy"


def test_published_lights_dim_by_their_peak():
    _, X, losses = blobs("", 0, True)
    ev = Evaluation(losses=losses, representations={"e": X})
    slicer = make("spotlight:as_published", options={"advanced.steps": 400, "slices": 2}).fit(ev)
    first = Sphere(slicer.centres_[0], slicer.shapes_[0]).weights(X)
    dimmed = losses * (1 - first / first.max())
    settings = AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, 400, None)
    second = published_sphere(Reader(X), dimmed, settings)
    np.testing.assert_allclose(slicer.centres_[1], second.centre, atol=1e-8)


def test_skipping_rows_changes_nothing():
    _, X, losses = blobs("", 0, True)
    rng = np.random.default_rng(5)
    skipping, mu = Reader(X), X[0] - X.mean(axis=0)
    for _ in range(30):
        mu = mu + 0.02 * rng.normal(size=X.shape[1])
        ours, plain = skipping.moments(mu, 0.02, losses), Reader(X).moments(mu, 0.02, losses)
        np.testing.assert_allclose(ours.pull, plain.pull, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose([ours.total, ours.mean], [plain.total, plain.mean], rtol=1e-12)
    assert skipping.reads < 25  # of 32 full reads without skipping


def test_integer_and_half_precision_columns_are_read():
    rng = np.random.default_rng(6)
    X = rng.integers(0, 255, (500, 8))
    losses = rng.random(500)
    for kind in (np.uint8, np.float16, np.float32):
        ev = Evaluation(losses=losses, representations={"e": X.astype(kind)})
        fixed = {"size": 0.02, "slices": 1, "advanced.grow": False, "advanced.widen": False}
        assert make("spotlight", options=fixed).fit(ev).membership(ev).sum() == pytest.approx(10, rel=1e-3)


def test_planted_clusters_are_the_first_two_slices():
    from errata import audit

    X, rate, cluster = planted(20_000, 64, 25, {0.02: 0.6, 0.05: 0.5}, seed=3)
    rng = np.random.default_rng(53)
    wrong = rng.random(len(X)) < rate
    labels = rng.integers(0, 5, len(X))
    ev = Evaluation(
        labels=labels,
        predictions=np.where(wrong, (labels + 1) % 5, labels),
        representations={"e": X.astype(np.float32)},
    )
    first = audit(ev, methods=["spotlight"]).slices[:2]
    assert [found.verdict for found in first] == ["confirmed", "confirmed"]
    precision = [[(cluster[found.members] == c).mean() for c in (0, 1)] for found in first]
    assert sorted(np.argmax(precision, axis=1).tolist()) == [0, 1]
    assert np.max(precision, axis=1).min() >= 0.8


def test_a_light_that_may_grow_ends_where_its_group_ends():
    """A group of 6% that is always wrong, looked for at 2%; and one of 1%."""
    rng = np.random.default_rng(7)
    for share in (0.06, 0.01):
        inside = np.arange(4000) < 4000 * share
        X = rng.normal(size=(4000, 8)) + 6 * inside[:, None]
        ev = Evaluation(losses=inside + 0.02 * rng.random(4000), representations={"e": X})
        slicer = make("spotlight", options={"size": 0.02, "slices": 1}).fit(ev)
        members = slicer.membership(ev)[:, 0] >= slicer.thresholds_[0]
        assert (members & inside).sum() >= 0.85 * inside.sum()
        assert (members & inside).sum() >= 0.85 * members.sum()


def far_away():
    """Losses of ten nats and a wide cloud, as in the benchmark: the published light does not end at its size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 64)) + 3
    blind = rng.random(1500) < 0.1
    X[blind, 0] += 12
    probs = np.where(blind, 2e-5, 0.999)
    return Evaluation(labels=np.ones(1500, dtype=int), probs=probs, representations={"e": X}), blind


def test_a_published_light_that_does_not_converge_says_so():
    ev, _ = far_away()
    with pytest.warns(ConvergenceWarning, match="lights of `spotlight` did not converge: they hold"):
        slicer = make("spotlight:as_published", options={"slices": 1}).fit(ev)
    rule = slicer.rules_[0]
    assert rule["mass"] == pytest.approx(slicer.membership(ev).sum() / 30, rel=1e-3)
    assert not 0.5 <= rule["mass"] <= 2
    assert not rule["converged"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = make("spotlight").fit(ev)
        converged = make("spotlight:as_published", options={"slices": 1, "advanced.loss": "bounded"}).fit(ev)
    assert all(rule["mass"] == pytest.approx(1, abs=1e-6) and rule["converged"] for rule in ours.rules_)
    assert converged.rules_[0]["converged"]
    assert ours.notes == converged.notes == ()


def test_an_audit_says_that_lights_did_not_converge():
    """Many times the rows asked for: the audit shows the slice, its page and the summary say what it is."""
    import errata

    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(0, 60, 3000), rng.normal(0, 0.1, 3000), rng.normal(120, 40, 3000)], axis=1)
    wrong = rng.random(3000) < np.where(X[:, 0] > 60, 0.9, 0.05)
    ev = Evaluation(labels=np.zeros(3000, dtype=int), predictions=wrong.astype(int), representations={"e": X})
    with pytest.warns(ConvergenceWarning):
        audit = errata.audit(ev, methods=["spotlight:as_published"], options={"spotlight": {"slices": 1}})
    assert audit.slices[0].rule["mass"] > 2
    assert "1 of 1 lights of `spotlight` did not converge" in audit.settings["notes"][0]
    assert "Its search did not converge: the light holds" in to_html(audit)
    assert "did not converge" in "".join(str(line) for line in to_terminal(audit).renderables)
    assert errata.audit(ev, methods=["spotlight"]).settings["notes"] == []


def test_bounded_losses_are_those_of_what_an_evaluation_has():
    labels = np.array([0, 1, 1])
    probs = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]])
    np.testing.assert_allclose(bounded_losses(Evaluation(labels=labels, probs=probs)), [0.1, 0.4, 0.8])
    hard = Evaluation(labels=labels, predictions=np.array([0, 1, 0]))
    assert bounded_losses(hard).tolist() == [0.0, 0.0, 1.0]
    assert bounded_losses(Evaluation(losses=np.array([0.5, 7.0]))).tolist() == [0.5, 7.0]


def test_the_size_is_the_smallest_that_holds_on_rows_left_aside():
    """A light that follows chance is bright only where it was searched; a wider one that is true comes next."""
    X = np.linspace(0, 1, 400)[:, None]
    losses = (X[:, 0] > 0.5) * np.tile([0.0, 1.0], 200)  # half of the rows above 0.5, every second
    searched = np.tile([True, True, False, False], 100)
    losses[searched & (X[:, 0] < 0.02)] = 1.0  # bright by chance, in the searched half alone

    def search(rows, bright, share):
        centre = np.array([0.0 if share < 0.1 else 0.9])
        return Sphere(centre, 1 / 0.03 if share < 0.1 else 1 / 0.2)

    assert choose_size([0.02, 0.05, 0.2], X, losses, searched, search) == 0.2
    losses[X[:, 0] < 0.02] = 1.0  # now it is there in both
    assert choose_size([0.02, 0.05, 0.2], X, losses, searched, search) == 0.02
    assert sizes_to_try(0.02) == [0.02, 0.04, 0.1, 0.2]
    assert sizes_to_try(0.3) == [0.3]


def test_random_errors_widen_the_lights_and_a_sharp_group_does_not():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 30))
    labels = np.zeros(2000, dtype=int)
    chance = Evaluation(labels=labels, predictions=(rng.random(2000) < 0.2).astype(int), representations={"e": X})
    assert make("spotlight").fit(chance).rules_[0]["size"] > 0.01
    X[:100] += 5
    sharp = Evaluation(labels=labels, predictions=(np.arange(2000) < 100).astype(int), representations={"e": X})
    assert make("spotlight").fit(sharp).rules_[0]["size"] == 0.01


def test_dim_lights_are_left_out():
    X = np.concatenate([np.zeros(50), np.full(50, 10.0), np.full(300, 20.0)])[:, None]
    losses = np.concatenate([np.full(50, 1.0), np.full(50, 0.6), np.full(300, 0.1)])
    lights = [Sphere(np.array([centre]), 1.0) for centre in (0.0, 10.0, 20.0)]
    means = [members_mean(light.weights(X), losses) for light in lights]
    assert brightest(means, 0.7) == [0]
    assert brightest(means, 0.5) == [0, 1]
    assert brightest(means, 0.0) == [0, 1, 2]


def test_a_group_is_found_along_principal_axes_among_many_columns_of_noise():
    rng = np.random.default_rng(2)
    cluster = rng.integers(0, 20, 3000)
    X = rng.normal(0, 4, (20, 200))[cluster] + rng.normal(size=(3000, 200))
    ev = Evaluation(labels=np.zeros(3000, dtype=int), predictions=(cluster == 3).astype(int), representations={"e": X})
    slicer = make("spotlight").fit(ev)
    assert slicer.centres_.shape[1] == 16
    members = (slicer.membership(ev) >= slicer.thresholds_)[:, 0]
    assert (members & (cluster == 3)).sum() >= 0.8 * members.sum()


def test_lights_that_were_saved_before_there_were_axes_are_restored():
    ev, _ = far_away()
    slicer = make("spotlight", options={"axes": None, "slices": 2}).fit(ev)
    state = slicer.to_state()
    arrays = {name: values for name, values in state.arrays.items() if name not in ("origin_", "axes_")}
    params = {
        "size": 0.02,
        "count": 2,
        "side": "hard",
        "shape": "sphere",
        "grow": False,
        "representation": None,
        "seed": 0,
    }
    old = type(state)(state.name, {**state.facts, "params": params}, arrays)
    np.testing.assert_array_equal(restore(old).membership(ev), slicer.membership(ev))
