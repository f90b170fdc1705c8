"""Trains a small network on MNIST: the PyTorch program of a GPU tutorial, with its progress shown.

Runs the same under `simt run examples/mnist_pytorch.py` and, unchanged, on PyTorch itself.
"""

import sys
import time

import torch

# Check whether CUDA is available
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print("Using device:", device)

import torch.nn as nn
import torch.optim as optim
from torchvision import datasets, transforms

EPOCHS = 5


# A simple neural network
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(28 * 28, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.fc2(x)
        return x


def show_progress(epoch, done, total, loss):
    """One line, rewritten in place; left out when the output is not a terminal."""
    if sys.stdout.isatty():
        bar = "#" * (20 * done // total)
        text = f"\repoch {epoch}/{EPOCHS} [{bar:<20}] {done}/{total} batches, loss {loss:.4f} "
        print(text, end="", flush=True)


def train_epoch(epoch):
    """One pass over the training set; returns the mean loss."""
    total_loss = 0.0
    for batch, (data, target) in enumerate(train_loader):
        data, target = data.view(-1, 28 * 28).to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        total_loss += loss.detach()
        if batch % 100 == 99:
            show_progress(epoch, batch + 1, len(train_loader), float(loss))
    return float(total_loss) / len(train_loader)


def test_accuracy():
    """Share of the test images that the model names rightly."""
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.view(-1, 28 * 28).to(device))
            correct += int((output.argmax(dim=1) == target.to(device)).sum())
    return correct / len(test_dataset)


# Load MNIST
transform = transforms.Compose([transforms.ToTensor()])
train_dataset = datasets.MNIST("./data", train=True, download=True, transform=transform)
test_dataset = datasets.MNIST("./data", train=False, download=True, transform=transform)
train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=64, shuffle=True)
test_loader = torch.utils.data.DataLoader(test_dataset, batch_size=1000)

# Move the model to the device
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

# Train, then test
start = time.perf_counter()
for epoch in range(1, EPOCHS + 1):
    epoch_start = time.perf_counter()
    loss = train_epoch(epoch)
    end = "\r" if sys.stdout.isatty() else ""
    seconds = time.perf_counter() - epoch_start
    print(f"{end}epoch {epoch}/{EPOCHS}: loss {loss:.4f}, {seconds:.2f} s{' ' * 40}".rstrip())
print(f"Test accuracy: {100 * test_accuracy():.2f} %")
print(f"Time: {time.perf_counter() - start:.2f} s")
