"""Helpers: other processes that answer what would otherwise wait for its turn.

One page has no use for them: the server answers by itself, with devices that are ranked already.
Once several pages ask at the same time helpers are started, and answer beside the server when they
are ready. A question takes its fleet along, so a helper need not know what was uploaded or drawn.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from threading import Thread

from fedplan.web.question import Question
from fedplan.web.shelf import Shelf, devices_cache
from fedplan.web.state import read_state

Make = Callable[[Question], bytes]  # a function that another process can import
_MOST_HELPERS = 3
# Questions at a time: one page has its last, the what-ifs of it, and one that it has given up.
_CROWD = 4
_KNOWN = devices_cache()  # of a helper: the devices it has ranked


class Helpers:
    """Seats for questions: one here, and one at every helper that is ready."""

    def __init__(self) -> None:
        self.seats = asyncio.Semaphore(1)
        self._number = min((os.cpu_count() or 1) - 1, _MOST_HELPERS)
        self._pool: ProcessPoolExecutor | None = None
        self._hiring: asyncio.Task[None] | None = None
        self._is_busy = False  # here

    def notice(self, make: Make, questions: int) -> None:
        """Begin to start helpers where so many questions are a crowd; nobody waits for that."""
        if questions >= _CROWD and self._hiring is None and self._number:
            self._hiring = asyncio.create_task(self._hire(make))

    async def do(self, make: Make, read: Callable[[], Question]) -> bytes:
        """Make the answer of a question, by whoever is free; to be called from a seat."""
        if not self._is_busy:
            self._is_busy = True
            try:
                return await asyncio.to_thread(lambda: make(read()))
            finally:
                self._is_busy = False
        question = await asyncio.to_thread(read)
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, _help, make, question)
        except BrokenProcessPool:  # a helper was killed, and there are none from now on
            return await asyncio.to_thread(make, question)

    async def _hire(self, make: Make) -> None:
        loop = asyncio.get_running_loop()
        self._pool = ProcessPoolExecutor(
            self._number,
            # Not by fork: this process has threads, which may hold any lock.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
        )
        ready = (loop.run_in_executor(self._pool, _warm_up, make) for _ in range(self._number))
        try:
            await asyncio.gather(*ready)
        except (BrokenProcessPool, OSError) as error:
            logging.getLogger(__name__).warning("helpers do not start (%s); on without.", error)
            self._pool.shutdown(wait=False, cancel_futures=True)
            return
        for _ in range(self._number):
            self.seats.release()


def _begin() -> None:
    """Leave Ctrl-C to the server, and end when it ends, however that is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    if (server := multiprocessing.parent_process()) is not None:
        server.join()
        os._exit(0)


def _warm_up(make: Make) -> None:
    """Load what every answer needs."""
    make(read_state({}, Shelf("")))


def _help(make: Make, question: Question) -> bytes:
    """Answer a question in a helper, with the fleet as it is remembered here."""
    devices = question.devices
    known = _KNOWN.find(devices.number) or _KNOWN.keep(devices.number, devices)
    problem = replace(question.problem, fleet=known.fleet)
    return make(replace(question, devices=known, problem=problem))
