"""Figures: plain data (`spec`), drawn for print (matplotlib) or for the screen (plotly).

>>> from fedplan import Bound, Fleet, compute_frontier
>>> from fedplan.figures import frontier_figure_data, save_figure
>>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, comm_energy_j=2.0)
>>> data = frontier_figure_data(compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)))
>>> save_figure(data, "no/such/folder/frontier.png")
Traceback (most recent call last):
fedplan.errors.InputError: no/such/folder/frontier.png: is in a folder that does not exist...

Importing this package imports neither matplotlib nor plotly: drawing does.
"""

from fedplan.figures.fit import fit_figure_data, learnt_figure_data
from fedplan.figures.frontier import frontier_figure_data
from fedplan.figures.losses import convergence_data, run_figure_data
from fedplan.figures.plan import plan_figure_data
from fedplan.figures.plots import plot_convergence, plot_costs, plot_fit, plot_frontier, plot_plan
from fedplan.figures.save import SUFFIXES, draw_print, draw_screen, save_figure
from fedplan.figures.spec import Figure, Panel, alone
from fedplan.figures.sweep import sweep_figure_data
from fedplan.figures.turns import TurnBill, plan_turns_data, turns_figure_data

__all__ = [
    "SUFFIXES",
    "Figure",
    "Panel",
    "TurnBill",
    "alone",
    "convergence_data",
    "draw_print",
    "draw_screen",
    "fit_figure_data",
    "frontier_figure_data",
    "learnt_figure_data",
    "plan_figure_data",
    "plan_turns_data",
    "plot_convergence",
    "plot_costs",
    "plot_fit",
    "plot_frontier",
    "plot_plan",
    "run_figure_data",
    "save_figure",
    "sweep_figure_data",
    "turns_figure_data",
]
