from ucbf.agents import AGENTS as AGENTS
from ucbf.agents import UCBH as UCBH
from ucbf.agents import UCBVI as UCBVI
from ucbf.agents import Agent as Agent
from ucbf.agents import CensoredWarning as CensoredWarning
from ucbf.agents import Greedy as Greedy
from ucbf.agents import Optimal as Optimal
from ucbf.agents import Random as Random
from ucbf.agents import UCBf as UCBf
from ucbf.agents import load as load
from ucbf.agents import make_agent as make_agent
from ucbf.disturbance import Disturbance as Disturbance
from ucbf.planning import Plan as Plan
from ucbf.planning import evaluate as evaluate
from ucbf.planning import greedy as greedy
from ucbf.planning import optimal as optimal
from ucbf.simulation import Run as Run
from ucbf.simulation import learn as learn
from ucbf.simulation import simulate as simulate
from ucbf.system import System as System
from ucbf.world import World as World
from ucbf.world import corrupt as corrupt
from ucbf.world import random_world as random_world

__version__: str
