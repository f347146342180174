"""The solver: separable laws fitted to many copies of a sample at once."""

from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import OBJECTIVES, Objective
from mnmt_laws.solver.sample import Sample
from mnmt_laws.solver.search import Minimum, find_minima

__all__ = ["OBJECTIVES", "DesignMatrix", "Minimum", "Objective", "Sample", "find_minima"]
