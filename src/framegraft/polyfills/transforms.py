"""What ``torch.func.grad(f)`` and its like give, as functions of what torch's closures hold, in the closures' order."""

from __future__ import annotations

from typing import Any

import torch

func: Any = torch.func


def grad(argnums: Any, eager_transforms: Any, function: Any, has_aux: Any, *args: Any, **kwargs: Any) -> Any:
    return func.grad(function, argnums, has_aux)(*args, **kwargs)


def grad_and_value(argnums: Any, eager_transforms: Any, function: Any, has_aux: Any, *args: Any, **kwargs: Any) -> Any:
    return func.grad_and_value(function, argnums, has_aux)(*args, **kwargs)


def vmap(chunk_size: Any, function: Any, in_dims: Any, out_dims: Any, randomness: Any, *args: Any, **kwargs: Any) -> Any:
    return func.vmap(function, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)


def jacrev(preallocate: Any, argnums: Any, chunk_size: Any, function: Any, has_aux: Any, *args: Any) -> Any:
    return func.jacrev(function, argnums, has_aux=has_aux, chunk_size=chunk_size, _preallocate_and_copy=preallocate)(*args)


def jacfwd(argnums: Any, function: Any, has_aux: Any, randomness: Any, *args: Any) -> Any:
    return func.jacfwd(function, argnums, has_aux, randomness=randomness)(*args)


# transform -> (what stands for its closure, the names in the closure)
CLOSURES = {
    func.grad: (grad, ("argnums", "eager_transforms", "func", "has_aux")),
    func.grad_and_value: (grad_and_value, ("argnums", "eager_transforms", "func", "has_aux")),
    func.vmap: (vmap, ("chunk_size", "func", "in_dims", "out_dims", "randomness")),
    func.jacrev: (jacrev, ("_preallocate_and_copy", "argnums", "chunk_size", "func", "has_aux")),
    func.jacfwd: (jacfwd, ("argnums", "func", "has_aux", "randomness")),
}
