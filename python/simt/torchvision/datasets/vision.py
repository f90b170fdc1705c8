"""The base class of torchvision's datasets."""

import os

from simt.torch.utils.data import Dataset


class StandardTransform:
    """A transform for inputs and one for targets, as one callable."""

    def __init__(self, transform=None, target_transform=None):
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input, target):
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def _lines(self, transform, head):
        lines = repr(transform).splitlines()
        return [f"{head}{lines[0]}"] + [" " * len(head) + line for line in lines[1:]]

    def __repr__(self):
        body = [self.__class__.__name__]
        if self.transform is not None:
            body += self._lines(self.transform, "Transform: ")
        if self.target_transform is not None:
            body += self._lines(self.target_transform, "Target transform: ")
        return "\n".join(body)


class VisionDataset(Dataset):
    """A dataset rooted in a folder.

    Args:
        root: folder of the files (``~`` is expanded).
        transforms: callable on (input, target); excludes the other two.
        transform: callable on the input.
        target_transform: callable on the target.

    Raises:
        ValueError: transforms together with transform or target_transform.
    """

    _repr_indent = 4

    def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
        if isinstance(root, str):
            root = os.path.expanduser(root)
        self.root = root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError(
                "Only transforms or transform/target_transform can be passed as argument"
            )
        self.transform = transform
        self.target_transform = target_transform
        if separate:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def extra_repr(self):
        return ""

    def __repr__(self):
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if getattr(self, "transforms", None) is not None:
            body += [repr(self.transforms)]
        return "\n".join(
            ["Dataset " + self.__class__.__name__] + [" " * self._repr_indent + b for b in body]
        )
