"""The three databases that can hold a catalog. No other package names one of them."""

from mainstem.engines.base import Capabilities, Change, Engine, EngineError, Jdbc, Outcome, Rows, Statement
from mainstem.engines.registry import ENGINES, open_engine

__all__ = [
    "ENGINES",
    "Capabilities",
    "Change",
    "Engine",
    "EngineError",
    "Jdbc",
    "Outcome",
    "Rows",
    "Statement",
    "open_engine",
]
