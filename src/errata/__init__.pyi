from . import app as app
from . import bench as bench
from . import core as core
from . import defuse as defuse
from . import draw as draw
from . import engine as engine
from . import explain as explain
from . import fix as fix
from . import hypothesis as hypothesis
from . import inputs as inputs
from . import notebook as notebook
from . import people as people
from . import report as report
from . import slicers as slicers
from . import store as store
from . import tensors as tensors
from . import train as train
from .core import Audit, Captions, Comparison, ErrataError, Evaluation, Plan, Slice, Source
from .core.confirm import Settings
from .core.metrics_by import by
from .fix import correct, hold_out, plan_prompts, plan_selection, plan_weights, recheck
from .hypothesis import run_test as test
from .inputs import collect
from .version import __version__ as __version__
from .workflow import apply, audit, compare, load, plan_labels, save

__all__ = [
    "Audit",
    "Captions",
    "Comparison",
    "ErrataError",
    "Evaluation",
    "Plan",
    "Settings",
    "Slice",
    "Source",
    "apply",
    "audit",
    "by",
    "collect",
    "compare",
    "correct",
    "hold_out",
    "load",
    "plan_labels",
    "plan_prompts",
    "plan_selection",
    "plan_weights",
    "recheck",
    "save",
    "test",
]
