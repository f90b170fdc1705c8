"""The seed program's training with the images in a tensor: no per-sample Python in the loader."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(28 * 28, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


mnist = datasets.MNIST("./data", train=True, download=True)
images = mnist.data.view(-1, 28 * 28).float() / 255
loader = DataLoader(TensorDataset(images, mnist.targets), batch_size=64, shuffle=True)
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

for _epoch in range(5):
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
print("loss", loss.item())
