"""Courses of a study: which one `fedplan run` uses, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fedplan.core.course import Course, wants_reports
from fedplan.core.problem import Problem
from fedplan.course import COURSES
from fedplan.errors import InputError
from fedplan.participation import Turns, Uniform

if TYPE_CHECKING:
    from fedplan.studies.study import Study

ONLINE, FIXED, PAPER = "online", "fixed", "paper"
# Those that are told of every round and asked before the next; each is made for a problem.
STEERING: Mapping[str, Callable[..., Course]] = {
    name: make for name, make in COURSES.items() if name != FIXED
}
PUBLISHED = tuple(name for name in STEERING if name != ONLINE)
COURSE_NAMES = tuple(dict.fromkeys((ONLINE, FIXED, PAPER, *STEERING)))


def choose_course(study: Study, *, live: bool = False) -> str:
    """The name of the course: the one given, or the one that the other keys imply.

    live : whether a federation trains, whose clients report only updates and times.

    >>> from fedplan.studies import read_study
    >>> [choose_course(read_study("demo", words)) for words in ([], ["participation=turns"])]
    ['online', 'fixed']
    """
    planning, law = study.planning, study.training.participation
    given = planning.course or planning.pilots
    course = given or (ONLINE if law is None else FIXED)
    if live and wants_reports(STEERING.get(course)):
        raise InputError(
            f"course={course} asks clients for losses and gradients, which those of a federation "
            "do not tell. Take another course, or leave out --runner flower to simulate it."
        )
    if law is not None and course in STEERING:
        raise InputError(
            f"course={course} decides itself who trains when, but got participation={law}. Leave "
            f"participation out, or set course={FIXED}."
        )
    if course == PAPER and law not in (None, Uniform.law):
        raise InputError(
            f"the paper draws its clients uniformly, but got participation={law}. Leave it out, or "
            f"set course={FIXED}."
        )
    return course


def fixed_law(study: Study) -> str:
    """The law of a training that keeps to one setting."""
    return study.training.participation or Turns.law


def make_course(name: str, problem: Problem, **options: Any) -> Course:
    """The course for this problem."""
    return STEERING[name](problem=problem, **options)
