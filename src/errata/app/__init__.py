"""The pages of a report, served, with the data and people's records behind them."""

from ..core import require

require("fastapi", "app")
