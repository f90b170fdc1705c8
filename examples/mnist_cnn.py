"""A small convolutional network on MNIST: about 99 % after two epochs.

simt run examples/mnist_cnn.py        # or plain `python`, on PyTorch itself
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 2


class Digits(nn.Module):
    """Two convolutions see strokes, pooling halves the picture, two linear layers decide."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3)
        self.drop1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(64 * 12 * 12, 128)
        self.drop2 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(self.drop1(x), 1)
        x = self.drop2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, loader, optimizer, device):
    """One epoch; returns the mean loss."""
    model.train()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(loader)


def test(model, loader, device):
    """Share of right answers in percent."""
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            guess = model(images.to(device)).argmax(dim=1)
            right += (guess == labels.to(device)).sum().item()
    return 100 * right / len(loader.dataset)


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    scale = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    training = datasets.MNIST("./data", train=True, download=True, transform=scale)
    testing = datasets.MNIST("./data", train=False, download=True, transform=scale)
    train_loader = DataLoader(training, batch_size=64, shuffle=True)
    test_loader = DataLoader(testing, batch_size=1000)

    model = Digits().to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.001)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, EPOCHS + 1):
        start = time.perf_counter()
        loss = train(model, train_loader, optimizer, device)
        scheduler.step()
        seconds = time.perf_counter() - start
        share = test(model, test_loader, device)
        print(f"epoch {epoch}: loss {loss:.4f}, test {share:.2f} %, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
