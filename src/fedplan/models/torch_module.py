"""FlatModule: a torch module whose weights are one vector; and torch without its global state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from fedplan.models.learner import FloatArray

BuildModule = Callable[[], nn.Module]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_global_draws = Lock()  # held while torch's one global generator is borrowed


class FlatModule:
    """A module, the trainable parts of which are one vector: parameters, then averaged buffers.

    Parameters are views of `_parameters` and their gradients views of `_gradient`, so that a step
    is one addition. Buffers are looked up anew each time: a module may replace them as it runs.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        parameters = list(module.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        self._parameters = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self._gradient = torch.zeros_like(self._parameters)
        for parameter, values, gradient in zip(
            parameters, self._parameters.split(sizes), self._gradient.split(sizes), strict=True
        ):
            parameter.data = values.view(parameter.shape)
            parameter.grad = gradient.view(parameter.shape)
        kept = set(module.state_dict())
        buffers = dict(module.named_buffers())
        self._averaged = [
            name for name, buffer in buffers.items() if name in kept and buffer.is_floating_point()
        ]
        self._reset = {
            name: buffer.clone() for name, buffer in buffers.items() if name not in self._averaged
        }

    def weights(self) -> torch.Tensor:
        """A copy of the weights as they are now."""
        buffers = dict(self.module.named_buffers())
        return torch.cat(
            [self._parameters, *(buffers[name].detach().reshape(-1) for name in self._averaged)]
        )

    def load(self, weights: FloatArray, *, training: bool) -> None:
        """Start from these weights, and from the first values of every other buffer."""
        self.module.train(training)
        count = len(self._parameters)
        self._parameters.numpy()[:] = weights[:count]
        buffers = dict(self.module.named_buffers())
        for name in self._averaged:
            buffer = buffers[name].detach()
            values = torch.tensor(weights[count : count + buffer.numel()])
            buffer.copy_(values.view(buffer.shape))
            count += buffer.numel()
        for name, first in self._reset.items():
            buffers[name].detach().copy_(first)

    def step(self, x: torch.Tensor, y: torch.Tensor, loss: Loss, rate: float) -> None:
        """One step of SGD on one batch."""
        self._gradient.zero_()
        loss(self.module(x), y).backward()
        self._parameters.add_(self._gradient, alpha=-rate)


class KeyedDraws(TorchDispatchMode):
    """Within it, what this thread's modules draw at random depends on the key alone.

    torch's dropout knows only the one generator of the process, which threads would share. A
    dispatch mode belongs to a thread and sees every operation: those that draw get our generator.
    """

    def __init__(self, *key: int) -> None:
        super().__init__()
        state = np.random.SeedSequence([part % 2**64 for part in key]).generate_state(1, np.uint64)
        self._generator = torch.Generator().manual_seed(int(state[0]))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            return func(*args, **{**kwargs, "generator": self._generator})
        with _borrowed_generator() as generator:
            generator.set_state(self._generator.get_state())
            try:
                return func(*args, **kwargs)
            finally:
                self._generator.set_state(generator.get_state())


def build(build_module: BuildModule, seed: int) -> nn.Module:
    """The module that `torch.manual_seed(seed); build_module()` would give."""
    with _borrowed_generator() as generator:
        generator.manual_seed(seed)
        return build_module()


def draws(action: Callable[[], object]) -> bool:
    """Whether this draws random numbers from torch's global generator."""
    with _borrowed_generator() as generator:
        before = generator.get_state()
        action()
        return not torch.equal(before, generator.get_state())


@contextmanager
def _borrowed_generator() -> Iterator[torch.Generator]:
    with _global_draws, torch.random.fork_rng(devices=[]):
        yield torch.default_generator


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch's operations on the calling thread alone, then give its threads back.

    torch keeps the number per thread; a thread that is new to torch starts from the number set
    last. One that starts in here therefore has one thread too.
    """
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
