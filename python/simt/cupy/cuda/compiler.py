"""cupy.cuda.compiler: the exception of kernels that do not compile."""


class CompileException(Exception):
    """What is wrong, with file, line, column and the line; get_message() gives it too."""

    def __init__(self, msg, source, name, options, backend="nvcc"):
        self._msg = msg
        self.source = source
        self.name = name
        self.options = options
        self.backend = backend
        super().__init__()

    def __reduce__(self):
        return type(self), (self._msg, self.source, self.name, self.options, self.backend)

    def __repr__(self):
        return str(self)

    def __str__(self):
        return self.get_message()

    def get_message(self):
        return self._msg
