"""A user's torch module: checked before training, with its weights as one vector."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from fedplan.errors import InputError, refuse
from fedplan.models.learner import FloatArray
from fedplan.models.torch_samples import Samples

BuildModule = Callable[[], nn.Module]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_global_draws = Lock()  # held while torch's one global generator is borrowed


class FlatModule:
    """A module whose trainable parts are one vector: parameters, then averaged buffers.

    Parameters are views of `_parameters` and their gradients views of `_gradient`, so that a step
    is one addition. Buffers are looked up every time: a module may replace them as it runs.
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
        self._averaged = [*_averaged_buffers(module)]
        self._reset = {
            name: buffer.clone()
            for name, buffer in module.named_buffers()
            if name not in self._averaged
        }

    def weights(self) -> torch.Tensor:
        """A copy of the weights as they are now."""
        buffers = dict(self.module.named_buffers())
        return torch.cat(
            [self._parameters, *(buffers[name].detach().reshape(-1) for name in self._averaged)]
        )

    def load(self, weights: FloatArray, *, training: bool) -> None:
        """Start from these weights, and from the initial values of every other buffer."""
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
    """A context in which the random draws of this thread's modules depend on the key alone.

    torch's dropout uses the one generator of the process, which threads would share. A
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
    """Run torch's operations on the calling thread alone, then restore its threads.

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


def _averaged_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    kept = set(module.state_dict())
    return {
        name: buffer
        for name, buffer in module.named_buffers()
        if name in kept and buffer.is_floating_point()
    }


def check_module(build_module: BuildModule) -> None:
    """Refuse a module that cannot be one float32 vector, or is not new on each call."""
    if isinstance(build_module, nn.Module):
        raise InputError(
            "build_module must be a function that returns a new module, but is a module. "
            "Give its class, or a lambda that makes one."
        )
    once, again = build(build_module, 0), build(build_module, 0)
    if not isinstance(once, nn.Module):
        raise InputError(
            f"build_module() must return a torch.nn.Module, but returned a {type(once).__name__}."
        )
    _check_tensors(once)
    if set(map(id, once.parameters())) & set(map(id, again.parameters())):
        raise InputError(
            "build_module() must return a new module each time, but returned the same parameters "
            "twice. Make the module inside the function."
        )
    if not torch.equal(FlatModule(once).weights(), FlatModule(again).weights()):
        raise InputError(
            "build_module() must give the same weights after the same torch.manual_seed, but gave "
            "others. Draw random numbers from torch alone."
        )


def _check_tensors(module: nn.Module) -> None:
    tensors: dict[str, torch.Tensor] = dict(module.named_parameters())
    if any(is_lazy(tensor) for tensor in tensors.values()):
        raise InputError(
            "parameters must have their shapes from the start, but the module has lazy ones. "
            "Run one sample through it in build_module."
        )
    problems = []
    if not any(tensor.requires_grad for tensor in tensors.values()):
        problems.append("the module must have parameters to train, but has none.")
    tensors |= _averaged_buffers(module)
    wrong = [
        (name, tensor)
        for name, tensor in tensors.items()
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu"
    ]
    if wrong:
        name, tensor = wrong[0]
        problems.append(
            f"weights must be float32 on the CPU, but {name} is {tensor.dtype} on {tensor.device} "
            f"({len(wrong):,} such). Return module.float().cpu() from build_module."
        )
    infinite = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
    if infinite:
        problems.append(
            f"weights must be finite, but {infinite[0]} is not ({len(infinite):,} such). "
            "Register constants, such as a mask, with persistent=False."
        )
    refuse(problems)


def try_out(
    module: nn.Module, loss: Loss, samples: Samples, batch_size: int, top_label: int
) -> tuple[bool, bool]:
    """Whether the module draws at random when it trains, and when it is evaluated.

    Refuses a module that cannot take a step on these samples, those of the smallest client.
    """
    x, y = samples.x[:batch_size], samples.y[:batch_size]

    def train() -> None:
        scores = module.train()(x)
        shape = tuple(getattr(scores, "shape", ()))
        if len(shape) != 2 or len(scores) != len(y) or shape[1] <= top_label:
            raise InputError(
                "the module must return scores of shape (samples, classes), here "
                f"({len(y)}, {top_label + 1} or more) for labels from 0 to {top_label}, but "
                f"returns {shape or f'a {type(scores).__name__}'}."
            )
        value = loss(scores, y)
        if tuple(getattr(value, "shape", (0,))):
            raise InputError(
                "loss must return the mean over a batch, a tensor of shape (), but returned "
                f"{tuple(value.shape) if hasattr(value, 'shape') else value!r}. Take its mean()."
            )
        value.backward()

    try:
        with torch.enable_grad():
            trains = draws(train)
        with torch.no_grad():
            return trains, draws(lambda: module.eval()(x))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the module must train on a batch of {len(y)} samples of shape "
            f"{tuple(x.shape[1:])}, the most the smallest client has for a step, but fails "
            f"with {type(error).__name__}: {error}"
        ) from error
