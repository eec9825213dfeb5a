"""Roster: the clients, by names that survive restarts, and the nodes they are on.

Flower gives a node a new id whenever it starts. What stays is what the node calls itself: its
`name` or `partition-id`, which every node is asked for once. A node that says nothing goes by its
id. Clients are numbered in the order of their names, whoever answers first; one that comes later
gets the next number.
"""

import re
from collections.abc import Iterable, Sequence

from flwr.app import Message, RecordDict

from fedplan.flower.exchange import POLL_S, Order, Outgoing, Post
from fedplan.flower.log import LOG
from fedplan.flower.replies import NAME, WHO

ANSWER_S = 120.0  # for a node to say who it is; nobody waits longer for one that does not
_NAME = re.compile(r"[\w.:@-]{1,64}", re.ASCII)


class Roster:
    """Clients known, as numbers from 0, and the node of each that is there.

    names : clients known from before, in their order.
    """

    def __init__(self, post: Post, deadline_s: float, names: Sequence[str] = ()) -> None:
        self._post, self._deadline_s = post, min(deadline_s, ANSWER_S)
        self.names = list(names)
        self._named: dict[int, str] = {}  # node id -> name
        self._asked: dict[int, Outgoing] = {}
        self._silent: set[int] = set()  # did not answer in time; asked again, but not waited for
        self._present: dict[int, int] = {}  # client -> node id

    @property
    def present(self) -> dict[int, int]:
        """The node id of every client that is there, by client."""
        return dict(sorted(self._present.items()))

    def settle(self) -> None:
        """Wait until every node that is there has said who it is, or its time is up."""
        while self.refresh():
            self._post.clock.wait(POLL_S)

    def wait_for(self, clients: int, seconds: float) -> bool:
        """Whether at least so many clients are there, at once or within these seconds."""
        end = self._post.clock.now() + seconds
        while True:
            unknown = self.refresh()
            if len(self._present) >= clients:
                return True
            if not unknown and self._post.clock.now() >= end:
                return False
            self._post.clock.wait(POLL_S)

    def refresh(self) -> bool:
        """See who is there; whether any node has yet to say who it is."""
        nodes = list(dict.fromkeys(self._post.grid.get_node_ids()))
        self._asked = {node: sent for node, sent in self._asked.items() if node in set(nodes)}
        new = [node for node in nodes if node not in self._named and node not in self._asked]
        if new:
            orders = {node: Order(RecordDict(), WHO) for node in new}
            self._asked |= self._post.send(orders, "fedplan", self._deadline_s)
        introduced = self._fetch()
        self._take(introduced, nodes)
        return self._is_waiting

    @property
    def _is_waiting(self) -> bool:
        return bool(self._asked.keys() - self._silent)

    def _fetch(self) -> dict[int, str]:
        answers = self._post.fetch(self._asked)
        now = self._post.clock.now()
        overdue = {n for n, sent in self._asked.items() if now - sent.sent >= self._deadline_s}
        self._silent = (self._silent | overdue) - answers.keys()
        for node in overdue | answers.keys():
            del self._asked[node]
        return {node: _name_of(node, answer.reply) for node, answer in answers.items()}

    def _take(self, introduced: dict[int, str], nodes: Iterable[int]) -> None:
        here = set(nodes)
        self._named = {n: name for n, name in (self._named | introduced).items() if n in here}
        # Of two nodes with the same name the first has it, for as long as it is there.
        holders: dict[str, int] = {}
        for node, name in self._named.items():
            if holders.setdefault(name, node) != node and node in introduced:
                LOG.warning(
                    "Nodes %s and %s both call themselves %s: only the first takes part. Give "
                    "every node its own partition-id.", holders[name], node, name,
                )  # fmt: skip
        if not self._is_waiting:  # all at once, since answers come in any order
            self.names += sorted(holders.keys() - set(self.names), key=_natural)
        numbers = {name: number for number, name in enumerate(self.names)}
        self._present = {numbers[name]: node for name, node in holders.items() if name in numbers}


def _name_of(node: int, reply: Message | None) -> str:
    if reply is not None and reply.has_content():
        for record in reply.content.config_records.values():
            name = record.get(NAME)
            if isinstance(name, str) and _NAME.fullmatch(name):
                return name
    return f"node-{node}"


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort partition-10 after partition-9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
