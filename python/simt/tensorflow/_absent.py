"""Names that are there to say, when they are used, that what they do is not in simt yet."""


class _Absent:
    def __init__(self, name, near):
        self._name, self._near = name, near

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self._name}: not in simt yet; nearest is {self._near}")

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return _Absent(f"{self._name}.{name}", self._near)


def absent(module, names, near):
    """{name: what refuses to be called} for a module of tf."""
    return {name: _Absent(f"{module}.{name}", near) for name in names.split()}
