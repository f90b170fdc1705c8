"""Test accuracy of the seed program's network for several seeds, on PyTorch or under `simt run`.

    python bench/accuracy.py --seeds 0 1 2          # PyTorch
    simt run bench/accuracy.py --seeds 0 1 2        # simt
    ... --data FashionMNIST                         # where ./data/FashionMNIST/raw is there

Prints one line per seed and, last, JSON. Batches are drawn from a tensor with randperm, which is
what the seed program's DataLoader does, without its per-sample Python.
"""

import argparse
import json
import time

import torch
import torch.nn as nn
import torch.optim as optim
from torchvision import datasets


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(28 * 28, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def load(name, train, root):
    data = getattr(datasets, name)(root, train=train, download=name == "MNIST")
    return data.data.view(-1, 28 * 28).float() / 255, data.targets


def train(seed, images, labels, epochs, batch=64):
    torch.manual_seed(seed)
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.001)
    for _epoch in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images), batch):
            pick = order[start : start + batch]
            optimizer.zero_grad()
            criterion(model(images[pick]), labels[pick]).backward()
            optimizer.step()
    return model


def accuracy(model, images, labels):
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum().item()
    return 100 * right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--data", default="MNIST", choices=["MNIST", "FashionMNIST"])
    parser.add_argument("--root", default="./data")
    args = parser.parse_args()
    images, labels = load(args.data, True, args.root)
    test_images, test_labels = load(args.data, False, args.root)
    results = []
    for seed in args.seeds:
        start = time.perf_counter()
        model = train(seed, images, labels, args.epochs)
        results.append(accuracy(model, test_images, test_labels))
        print(f"seed {seed}: {results[-1]:.2f} % ({time.perf_counter() - start:.1f} s)", flush=True)
    mean = sum(results) / len(results)
    print(json.dumps({"data": args.data, "seeds": args.seeds, "accuracy": results, "mean": mean}))


if __name__ == "__main__":
    main()
