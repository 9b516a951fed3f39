"""The three databases that can hold a catalog. No other package names one of them."""

from mainstem.engines.base import Capabilities, Engine, EngineError, Jdbc, Outcome
from mainstem.engines.registry import ENGINES, open_engine

__all__ = ["ENGINES", "Capabilities", "Engine", "EngineError", "Jdbc", "Outcome", "open_engine"]
