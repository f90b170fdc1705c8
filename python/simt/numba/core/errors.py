"""Numba's exceptions and warnings."""


class NumbaError(Exception):
    """What Numba's own errors are."""

    def __init__(self, msg="", loc=None, highlighting=True):
        self.msg, self.loc = msg, loc
        super().__init__(msg)


class TypingError(NumbaError, TypeError):
    """The source of a kernel makes no sense for the types of its arguments."""


class UnsupportedError(NumbaError):
    pass


class LoweringError(NumbaError):
    pass


class CompilerError(NumbaError):
    pass


class ForceLiteralArg(NumbaError):
    pass


class NumbaValueError(TypingError):
    pass


class NumbaTypeError(TypingError):
    pass


class NumbaIndexError(TypingError):
    pass


class RequireLiteralValue(TypingError):
    pass


class UntypedAttributeError(TypingError):
    pass


class NumbaWarning(Warning):
    pass


class NumbaPerformanceWarning(NumbaWarning):
    pass


class NumbaDeprecationWarning(NumbaWarning, DeprecationWarning):
    pass


class NumbaPendingDeprecationWarning(NumbaWarning, PendingDeprecationWarning):
    pass


class NumbaInvalidConfigWarning(NumbaWarning):
    pass


class NumbaDebugInfoWarning(NumbaWarning):
    pass


class NumbaExperimentalFeatureWarning(NumbaWarning):
    pass
