"""A training loop: forward and backward graphs through AOTAutograd, next to the same loop in eager mode."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

import framegraft


class SmallNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.head = nn.Linear(16, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv1(images))
        x = F.max_pool2d(F.relu(self.norm(self.conv2(x))), 2)
        return self.head(x.mean(dim=(2, 3)))


def train(model: nn.Module, steps: int, seed: int) -> list[float]:
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        images = torch.randn(16, 1, 12, 12, generator=generator)
        labels = torch.randint(0, 10, (16,), generator=generator)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    torch.manual_seed(0)
    eager = SmallNet()
    captured = framegraft.compile(copy.deepcopy(eager), backend="aot_eager")
    expected = train(eager, steps=10, seed=1)
    losses = train(captured, steps=10, seed=1)
    assert framegraft.stats()["graphs"] >= 1, framegraft.break_reasons()
    print(" step   eager     captured")
    for step, (a, b) in enumerate(zip(expected, losses, strict=True)):
        print(f"{step:5d}   {a:.6f}  {b:.6f}")
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-4, atol=1e-5)
    for name, parameter in eager.named_parameters():
        torch.testing.assert_close(captured.get_parameter(name), parameter, rtol=1e-3, atol=1e-4)
    print("losses and parameters agree with eager mode")


if __name__ == "__main__":
    main()
