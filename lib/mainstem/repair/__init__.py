"""What a validation has found, put right where there is one right answer."""

from mainstem.repair.decisions import Decision
from mainstem.repair.run import Repaired, Step, repair

__all__ = ["Decision", "Repaired", "Step", "repair"]
