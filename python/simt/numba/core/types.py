"""Numba's types: what signatures are written in (float32[:, ::1], "void(int64)").

A signature for the dispatcher is a byte string (src/frontend/python/frontend.h); to_bytes and
from_bytes translate.
"""

from simt import _core


class Type:
    """A type; types of the same meaning are equal."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __eq__(self, other):
        return isinstance(other, Type) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def __call__(self, *args):
        if len(args) == 1 and not isinstance(args[0], Type):
            return self.cast_python_value(args[0])
        return Signature(self, args)

    def cast_python_value(self, value):
        raise NotImplementedError(f"a {self.name} cannot be made of a Python value")

    def __getitem__(self, axes):
        """float32[:], float32[:, ::1]: the type of arrays."""
        items = axes if isinstance(axes, (tuple, list)) else (axes,)
        if not all(isinstance(s, slice) and s.start is None and s.stop is None for s in items):
            raise KeyError(
                f"Can only index numba types with slices with no start or stop, got {axes}."
            )
        if items[-1].step == 1:
            layout = "C"
        else:
            layout = "F" if items[0].step == 1 else "A"
        return Array(self, len(items), layout)


class Number(Type):
    """A scalar type. number: the binding's code of it; bitwidth as Numba's."""

    def __init__(self, name, number, bitwidth):
        super().__init__(name)
        self._simt_scalar = number
        self.bitwidth = bitwidth

    def cast_python_value(self, value):
        import numpy

        return getattr(numpy, "bool_" if self.name == "bool" else self.name)(_core.own_lists(value))

    @property
    def dtype(self):
        return self

    def _bytes(self):
        return bytes((self._simt_scalar,))


class Boolean(Number):
    pass


class Integer(Number):
    @property
    def signed(self):
        return self.name.startswith("int")


class Float(Number):
    pass


class Complex(Number):
    pass


class Record(Type):
    """A structured type; dtype: NumPy's."""

    def __init__(self, dtype):
        fields = ", ".join(f"{n}: {dtype[n]}" for n in dtype.names)
        super().__init__(f"Record({fields}{'; aligned' if dtype.isalignedstruct else ''})")
        self.dtype = self._simt_record = dtype
        self.size = dtype.itemsize
        self._text = record_text(dtype)

    def __eq__(self, other):
        return isinstance(other, Record) and other._text == self._text

    __hash__ = Type.__hash__

    def typeof(self, field):
        """The type of a field."""
        return from_dtype(self.dtype[field])


class CharSeq(Type):
    """Elements of a bytes dtype: count characters of one byte."""

    _prefix, _kind = "char", "S"

    def __init__(self, count):
        import numpy

        super().__init__(f"[{self._prefix} x {count}]")
        self.count = count
        self.dtype = self._simt_record = numpy.dtype(f"{self._kind}{count}")
        self._text = record_text(self.dtype)


class UnicodeCharSeq(CharSeq):
    """Elements of a str dtype: count characters of four bytes."""

    _prefix, _kind = "unichr", "U"


class Array(Type):
    """An array of ndim dimensions; layout 'C', 'F' or 'A' (any strides)."""

    def __init__(self, dtype, ndim, layout, readonly=False, aligned=True):
        if not isinstance(dtype, (Number, Record, CharSeq)):
            raise TypeError(f"arrays of {dtype} are not in simt yet")
        if not 0 <= ndim <= 8 or layout not in ("C", "F", "A"):
            raise ValueError(f"no array type of {ndim} dimensions and layout {layout!r}")
        self.dtype, self.ndim, self.layout = dtype, ndim, layout
        self.mutable = not readonly
        kind = "readonly array" if readonly else "array"
        super().__init__(f"{kind}({dtype}, {ndim}d, {layout})")

    def copy(self, dtype=None, ndim=None, layout=None, readonly=None):
        return Array(
            dtype or self.dtype,
            self.ndim if ndim is None else ndim,
            layout or self.layout,
            not self.mutable if readonly is None else readonly,
        )

    def _bytes(self):
        record = isinstance(self.dtype, (Record, CharSeq))
        number = ord("R") if record else self.dtype._simt_scalar
        head = bytes((ord("A"), number, self.ndim, ord(self.layout), 0 if self.mutable else 1))
        if not record:
            return head
        return head + len(self.dtype._text).to_bytes(2, "little") + self.dtype._text


class CPointer(Type):
    """An address, given as an integer, of elements of a number's type."""

    def __init__(self, dtype):
        if not isinstance(dtype, Number):
            raise TypeError(f"pointers to {dtype} are not in simt yet: there are those to numbers")
        super().__init__(f"{dtype}*")
        self.dtype = dtype

    def _bytes(self):
        return bytes((ord("A"), self.dtype._simt_scalar, 1, ord("P"), 0))


class BaseTuple(Type):
    """A tuple of the given types."""

    def __init__(self, items):
        self.types = tuple(items)
        one = set(self.types)
        if len(one) == 1:
            name = f"UniTuple({self.types[0]} x {len(self.types)})"
        else:
            name = f"Tuple({', '.join(map(str, self.types))})"
        super().__init__(name)
        self.count = len(self.types)

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(self.types)

    def _bytes(self):
        return bytes((ord("T"), self.count)) + b"".join(t._bytes() for t in self.types)


class NamedTuple(BaseTuple):
    """A named tuple of the given types; fields: the names."""

    def __init__(self, items, cls):
        super().__init__(items)
        self.fields, self.instance_class = tuple(cls._fields), cls
        items = ", ".join(f"{f}: {t}" for f, t in zip(self.fields, self.types, strict=True))
        self.name = f"{cls.__name__}({items})"

    def _bytes(self):
        names = (self.instance_class.__name__, *self.fields)
        head = bytes((ord("M"), self.count)) + b"".join(n.encode() + b"\0" for n in names)
        return head + b"".join(t._bytes() for t in self.types)


def NamedUniTuple(dtype, count, cls):
    return NamedTuple((dtype,) * count, cls)


def Tuple(items):
    return BaseTuple(items)


def UniTuple(dtype, count):
    return BaseTuple((dtype,) * count)


class NoneType(Type):
    def _bytes(self):
        return b"N"


class _Member(Type):
    """A member of an Enum that is no number, as an argument: a constant of the kernel."""

    def __init__(self, number):
        super().__init__(f"member of an Enum at {int.from_bytes(number, 'little'):#x}")
        self._number = number

    def _bytes(self):
        return b"E" + self._number


class Omitted(Type):
    """An argument left out that has a default value."""

    def _bytes(self):
        return b"D"


class Signature:
    """Types of the arguments, and of the result."""

    def __init__(self, return_type, args):
        self.return_type, self.args = return_type, tuple(args)
        for t in self.args:
            if not isinstance(t, Type):
                raise TypeError(f"{t!r} in a signature is no type")

    def __repr__(self):
        return f"({', '.join(map(str, self.args))}) -> {self.return_type}"

    def __eq__(self, other):
        return (
            isinstance(other, Signature)
            and self.args == other.args
            and self.return_type == other.return_type
        )

    def __hash__(self):
        return hash((self.return_type, self.args))


void = none = NoneType("none")
boolean = bool_ = b1 = Boolean("bool", 1, 1)
int8 = i1 = char = Integer("int8", 2, 8)
int16 = i2 = short = Integer("int16", 3, 16)
int32 = i4 = intc = Integer("int32", 4, 32)
int64 = i8 = int_ = intp = long_ = longlong = ssize_t = Integer("int64", 5, 64)
uint8 = u1 = byte = uchar = Integer("uint8", 6, 8)
uint16 = u2 = ushort = Integer("uint16", 7, 16)
uint32 = u4 = uintc = Integer("uint32", 8, 32)
uint64 = u8 = uint = uintp = ulong = ulonglong = size_t = Integer("uint64", 9, 64)
float16 = f2 = Float("float16", 10, 16)
float32 = f4 = float_ = Float("float32", 11, 32)
float64 = f8 = double = Float("float64", 12, 64)
complex64 = c8 = Complex("complex64", 13, 64)
complex128 = c16 = Complex("complex128", 14, 128)

SCALARS = (
    *(boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float16, float32, float64, complex64, complex128),
)
signed_domain = frozenset([int8, int16, int32, int64])
unsigned_domain = frozenset([uint8, uint16, uint32, uint64])
integer_domain = signed_domain | unsigned_domain
real_domain = frozenset([float32, float64])
complex_domain = frozenset([complex64, complex128])
number_domain = real_domain | integer_domain | complex_domain


def is_signature(o):
    """Whether cuda.jit's argument is one signature."""
    return isinstance(o, (str, tuple, Signature, Type))


def normalize_signature(sig):
    """(argument types, return type or None) of a signature in any of its forms."""
    parsed = sig
    if isinstance(sig, str):
        try:
            parsed = eval(sig, {"__builtins__": {}}, globals())
        except MemoryError:
            raise
        except Exception as error:
            raise TypeError(f"invalid signature: {sig!r} ({error})") from None
    if isinstance(parsed, tuple):
        args, result = parsed, None
    elif isinstance(parsed, Signature):
        args, result = parsed.args, parsed.return_type
    elif isinstance(parsed, Type):
        args, result = (parsed,), None
    else:
        args, result = (None,), None
    if not all(isinstance(t, Type) for t in args):
        raise TypeError(
            f"invalid signature: {sig!r} (type: {type(sig).__name__!r}) evaluates to "
            f"{parsed!r} which is not a signature"
        )
    return tuple(args), result


def to_bytes(args):
    """The byte string of argument types."""
    for t in args:
        if not hasattr(t, "_bytes"):
            raise TypeError(f"{t} in a signature is not in simt yet")
    return b"".join(t._bytes() for t in args)


def from_bytes(signature):
    """The argument types of a byte string."""
    types, at = [], 0
    while at < len(signature):
        t, at = _read(signature, at)
        types.append(t)
    return tuple(types)


def _read(s, at):
    mark = s[at : at + 1]
    if mark == b"A":
        dtype, ndim, layout, flags = s[at + 1 : at + 5]
        at += 5
        if dtype == ord("R"):
            dtype, at = _read_record(s, at + 2)
            dtype = from_dtype(dtype)
        else:
            dtype = SCALARS[dtype - 1]
        if layout == ord("P"):
            return CPointer(dtype), at
        return Array(dtype, ndim, chr(layout), bool(flags & 1)), at
    if mark in (b"T", b"M"):
        items, names, count = [], [], s[at + 1]
        at += 2
        for _ in range(count + 1 if mark == b"M" else 0):
            end = s.index(0, at)
            names.append(s[at:end].decode())
            at = end + 1
        for _ in range(count):
            t, at = _read(s, at)
            items.append(t)
        if names:
            from collections import namedtuple

            return NamedTuple(items, namedtuple(names[0], names[1:])), at
        return BaseTuple(items), at
    if mark == b"N":
        return none, at + 1
    if mark == b"D":
        return Omitted("omitted"), at + 1
    if mark == b"E":
        return _Member(s[at + 1 : at + 9]), at + 9
    return SCALARS[s[at] - 1], at + 1


# Descriptions of records: see src/frontend/python/frontend.h.


_ALIGNED, _CHARS = 0x8000, 0x4000
_MOST_CHARS = 1024


def _is_chars(dtype):
    return dtype.kind in "SU"


def _chars_text(dtype):
    if not dtype.isnative or not 0 < dtype.itemsize <= _MOST_CHARS:
        raise TypeError(
            f"elements of dtype {dtype.str}: kernels take strings of 1 to {_MOST_CHARS} bytes, "
            "in the machine's byte order"
        )
    mark = _CHARS + (1 if dtype.kind == "S" else 4)
    return dtype.itemsize.to_bytes(4, "little") + mark.to_bytes(2, "little")


def record_text(dtype, depth=0):
    """The description of a structured NumPy dtype, or of one of strings."""
    if _is_chars(dtype):
        return _chars_text(dtype)
    if depth > 14:
        raise TypeError(f"records nested more than {depth} deep: kernels do not take them")
    if len(dtype.names) >= _CHARS:
        raise TypeError(f"a record of {len(dtype.names)} fields: kernels do not take it")
    count = len(dtype.names) + (_ALIGNED if dtype.isalignedstruct else 0)
    out = dtype.itemsize.to_bytes(4, "little") + count.to_bytes(2, "little")
    for name in dtype.names:
        field, offset = dtype.fields[name][:2]
        base, shape = field.subdtype or (field, ())
        if len(shape) > 8:
            raise TypeError(f"field '{name}' has {len(shape)} dimensions: kernels have at most 8")
        out += name.encode() + b"\0" + offset.to_bytes(4, "little") + bytes((len(shape),))
        out += b"".join(n.to_bytes(4, "little") for n in shape)
        if base.names or _is_chars(base):
            out += b"R" + record_text(base, depth + 1)
        else:
            scalar = _scalar_of(base)
            if scalar is None:
                raise TypeError(
                    f"field '{name}' of type {base}: records are of numbers, bools, strings and "
                    "records"
                )
            out += scalar._bytes()
    return out


def _scalar_of(dtype):
    name = "bool" if dtype.kind == "b" else dtype.name
    found = [t for t in SCALARS if t.name == name]
    return found[0] if found and dtype.isnative else None


def _read_record(s, at):
    import numpy

    def number(n):
        nonlocal at
        at += n
        return int.from_bytes(s[at - n : at], "little")

    itemsize, names, formats, offsets = number(4), [], [], []
    count = number(2)
    if count & _CHARS:
        kind, width = ("S", 1) if count & 1 else ("U", 4)
        return numpy.dtype(f"{kind}{itemsize // width}"), at
    for _ in range(count & ~_ALIGNED):
        end = s.index(0, at)
        names.append(s[at:end].decode())
        at = end + 1
        offsets.append(number(4))
        shape = tuple(number(4) for _ in range(number(1)))
        code = number(1)
        if code == ord("R"):
            base, at = _read_record(s, at)
        else:
            base = as_dtype(SCALARS[code - 1])
        formats.append((base, shape) if shape else base)
    made = {"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
    return numpy.dtype(made, align=count >= _ALIGNED), at


def describe_signature(signature):
    """The argument types of a byte string, for errors."""
    return ", ".join(map(str, from_bytes(signature)))


def describe_mismatch(given, declared):
    """Given argument types, and the declared ones that they do not fit, for errors."""
    fit = " or ".join(f"({describe_signature(s)})" for s in declared)
    return f"{describe_signature(given)}; declared: {fit}"


def typeof(value):
    """The type that a kernel sees for a Python value."""
    return from_bytes(_core.signature_of(value))[0]


def from_dtype(dtype):
    """The scalar or record type of a NumPy dtype."""
    if getattr(dtype, "names", None):
        return Record(dtype)
    if getattr(dtype, "kind", "") == "S":
        return CharSeq(dtype.itemsize)
    if getattr(dtype, "kind", "") == "U":
        return UnicodeCharSeq(dtype.itemsize // 4)
    probe = _core.device_empty((0,), dtype)
    return SCALARS[probe._simt_element - 1]


def as_dtype(t):
    """The NumPy dtype of a scalar type."""
    import numpy

    if isinstance(t, (Record, CharSeq)):
        return t.dtype
    if not isinstance(t, Number):
        raise NotImplementedError(f"{t} cannot be represented as a NumPy dtype")
    return numpy.dtype("bool" if t.name == "bool" else t.name)
