"""``flex_attention`` and ``create_block_mask``: torch's operators, on graphs of the functions that they are given."""

import torch
import torch.nn as nn
from torch.nn.attention.flex_attention import and_masks, create_block_mask, create_mask, flex_attention

import framegraft

from .differential import differential


def waves(*shape):
    count = torch.Size(shape).numel()
    return torch.arange(float(count)).sin().view(shape)


def short():
    return waves(1, 2, 16, 8), waves(1, 2, 16, 8) * 2, waves(1, 2, 16, 8).cos()


def long():
    return (waves(1, 2, 128, 8),)


def causal(b, h, q, k):
    return q >= k


BLOCKS = create_block_mask(causal, 1, None, 128, 128, device="cpu")
SCALE = torch.tensor(2.0)


def capped(score, b, h, q, k):
    return 20 * torch.tanh(score / 20) * SCALE


@differential(short, graphs=1)
def test_without_functions(q, k, v):
    return flex_attention(q, k, v), flex_attention(q, k, v, scale=0.5)


@differential(short, graphs=1)
def test_functions_of_scores(q, k, v):
    bias = q[0, :, :, 0] * 2
    near = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + bias[h, i] * (i - j))
    return near + flex_attention(q, k, v, score_mod=capped)


@differential(lambda: (waves(1, 4, 16, 8), waves(1, 2, 16, 8)), graphs=1)
def test_groups_of_heads(q, k):
    return flex_attention(q, k, k, enable_gqa=True)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = nn.Parameter(waves(2), requires_grad=False)

    def forward(self, q):
        def slope(score, b, h, i, j):
            return score + self.slopes[h] * (j - i)

        return flex_attention(q * 2, q, q, score_mod=slope).transpose(1, 2)


@differential(lambda: (Attention(), waves(1, 2, 16, 8)), graphs=1)
def test_parameters_in_functions(attention, q):
    return attention(q)


@differential(long, graphs=1)
def test_block_masks_from_outside(q):
    return flex_attention(q, q, q, block_mask=BLOCKS)


@differential(lambda: (waves(2, 2, 128, 8), torch.tensor([100, 128])), graphs=1)
def test_block_masks_made_inside(q, lengths):
    def padded(b, h, i, j):
        return j < lengths[b]

    mask = create_block_mask(and_masks(causal, padded), 2, None, 128, 128, device=q.device, BLOCK_SIZE=64)
    return flex_attention(q, q, q, block_mask=mask), mask.kv_num_blocks


@differential(lambda: (torch.tensor([2.0, -1.0]),), graphs=1)
def test_dense_masks(x):
    def beyond(score, b, h, i, j):
        return torch.where(x[h] > i - j, score, -float("inf"))

    return create_mask(causal, 1, 1, 4, 4, "cpu"), create_mask(beyond, None, 2, 4, 4, "cpu")


@differential(short)
def test_refused_arguments(q, k, v):
    try:
        return flex_attention(q[0], k, v)
    except (NotImplementedError, ValueError) as error:
        return str(error)


def test_other_lengths():
    def fn(q):
        return flex_attention(q, q, q, score_mod=capped)

    compiled = framegraft.compile(fn, backend="eager")
    for length in (16, 24, 32):
        q = waves(1, 2, length, 8)
        assert torch.equal(compiled(q), fn(q))


def test_behind_aotautograd():
    def fn(q):
        bias = q[0, :, :, 0] * 2
        return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + bias[h, i])

    q = waves(1, 2, 16, 8)
    assert torch.equal(framegraft.compile(fn, backend="aot_eager", fullgraph=True)(q), fn(q))
