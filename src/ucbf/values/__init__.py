"""Ways of valuing where a table would not fit: values that are fitted, and rules that are searched for.

:func:`policy_iteration` is for systems without an end, :func:`backward_induction` for those with one. Both take a
:class:`ucbf.LargeSystem` and a distribution of W, and give a rule that is judged by simulation, with its standard
error.
"""

from ucbf.values.backward import Backward as Backward
from ucbf.values.backward import backward_induction as backward_induction
from ucbf.values.fits import Fit as Fit
from ucbf.values.fits import Hats as Hats
from ucbf.values.fits import Linear as Linear
from ucbf.values.fits import Nearest as Nearest
from ucbf.values.fits import Regressor as Regressor
from ucbf.values.iteration import Fitted as Fitted
from ucbf.values.iteration import policy_iteration as policy_iteration
from ucbf.values.paths import Estimate as Estimate
from ucbf.values.paths import FitWarning as FitWarning
from ucbf.values.paths import Outcomes as Outcomes
from ucbf.values.scores import Scores as Scores
from ucbf.values.searching import search as search
from ucbf.values.simulating import measured as measured
from ucbf.values.up_to import UpTo as UpTo
