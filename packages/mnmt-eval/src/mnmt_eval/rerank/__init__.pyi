from .candidates import Candidates as Candidates
from .candidates import read_candidates as read_candidates
from .choice import Choice as Choice
from .choice import choose_by_risk as choose_by_risk
from .choice import expected_scores as expected_scores
