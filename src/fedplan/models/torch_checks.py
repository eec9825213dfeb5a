"""Checks of a user's torch module and loss, before the first round rather than in it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from fedplan.errors import InputError
from fedplan.models.torch_module import BuildModule, FlatModule, Loss, build, draws
from fedplan.models.torch_samples import Samples


def check_module(build_module: BuildModule) -> None:
    """Refuse a module that cannot be one vector of float32, or is not built anew each time."""
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
    kept = set(module.state_dict())
    tensors |= {
        name: buffer
        for name, buffer in module.named_buffers()
        if name in kept and buffer.is_floating_point()
    }
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
    if problems:
        raise InputError(problems)


def try_out(
    module: nn.Module, loss: Loss, samples: Samples, batch_size: int, top_label: int
) -> tuple[bool, bool]:
    """Whether the module draws at random when it trains, and when it is evaluated.

    Refuses a module that cannot take a step on these samples, those of the smallest client.
    """
    x, y = samples.x[:batch_size], samples.y[:batch_size]

    def train() -> None:
        scores = module.train()(x)
        _check_scores(scores, len(y), top_label)
        value = loss(scores, y)
        _check_loss(value)
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


def _check_scores(scores: object, size: int, top_label: int) -> None:
    wanted = "the module must return scores of shape (samples, classes)"
    if not isinstance(scores, torch.Tensor):
        raise InputError(
            f"{wanted}, but returns a {type(scores).__name__}. "
            "Wrap it in a module that returns the scores alone."
        )
    if scores.ndim != 2 or len(scores) != size:
        raise InputError(f"{wanted}, but for {size} samples returns {tuple(scores.shape)}.")
    if top_label >= scores.shape[1]:
        raise InputError(
            f"`label < classes` must hold, but the module scores {scores.shape[1]} classes and "
            f"label {top_label} occurs. Give the module {top_label + 1} outputs, or number the "
            "labels from 0."
        )


def _check_loss(value: object) -> None:
    if not isinstance(value, torch.Tensor) or value.ndim != 0:
        shape = f" of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else ""
        raise InputError(
            "loss must return the mean over a batch, a tensor of shape (), but returned a "
            f"{type(value).__name__}{shape}. Take its mean()."
        )
