"""simt run: runs a program as python would, with the aliases of simt.alias in place.

The program runs in this process (a second interpreter would double the start-up time), as a fresh
__main__: sys.argv, sys.path[0], exit codes and tracebacks are those of python. The few forms that
need the interpreter itself (an interactive `-`, a .pyc file) are handed to a new one.
"""

import os
import sys

from simt import _machine, alias
from simt._lang import tr
from simt.cli import Usage, _fail, _not_yet

_OUR_FINDERS = ("simt", "simt.alias", "simt._missing")
# File name -> text (str, or bytes as read) of a program that is in no file: kernels are compiled
# from it. linecache would be the place, but importing it costs 5 ms.
sources = {}
_NOT_YET_OPTIONS = ("--check", "--explain", "--profile", "--soft-gpu")


class _Options:
    """The options of one `simt run`; kind is 'script', '-m', '-c' or '-'."""

    def __init__(self):
        self.device = None
        self.keep = []
        self.quiet = False
        self.not_yet = []
        self.kind = None
        self.target = None
        self.args = []


def parse(args):
    """The options in args; raises Usage. What follows the program is the program's own."""
    options = _Options()
    rest = list(args)

    def value(option):
        if "=" in option and option.startswith("--"):
            return option.partition("=")[2]
        if not rest:
            raise Usage(tr(f"{option} needs a value", f"{option} 需要一个值"))
        return rest.pop(0)

    while rest:
        arg = rest.pop(0)
        name = arg.partition("=")[0] if arg.startswith("--") else arg
        if name == "--device":
            options.device = value(arg)
        elif name == "--keep":
            options.keep += value(arg).split(",")
        elif arg in ("-q", "--quiet"):
            options.quiet = True
        elif name in _NOT_YET_OPTIONS:
            options.not_yet.append(name)
            if name == "--profile":
                value(arg)
        elif arg in ("-m", "-c"):
            options.kind, options.target, options.args = arg, value(arg), rest
            return options
        elif arg == "-" or not arg.startswith("-"):
            options.kind, options.target, options.args = (
                ("-" if arg == "-" else "script"),
                arg,
                rest,
            )
            return options
        elif arg == "--":
            if not rest:
                break
            options.kind, options.target, options.args = "script", rest.pop(0), rest
            return options
        else:
            raise Usage(tr(f"unknown option {arg}", f"未知选项 {arg}"))
    raise Usage(
        tr(
            "needs a program: SCRIPT, -m MODULE, -c CODE or -",
            "缺少程序: 脚本、-m 模块、-c 代码或 -",
        )
    )


def main(args):
    """Runs `simt run ARGS`; returns the exit code, or raises what ends the program."""
    options = parse(args)
    if options.not_yet:
        return _not_yet(f"run {' '.join(options.not_yet)}")
    unknown = [n for n in options.keep if n not in alias.NAMES]
    if unknown:
        raise Usage(
            tr(
                f"--keep {unknown[0]}: not one of {', '.join(alias.NAMES)}",
                f"--keep {unknown[0]}: 可用的名字是 {', '.join(alias.NAMES)}",
            )
        )
    try:
        device, why = _machine.choose_device(options.device)
    except (ValueError, LookupError) as error:
        return _fail(f"run: {error}")
    if options.device:
        os.environ["SIMT_DEVICE"] = options.device
    aliased = alias.install(keep=options.keep)
    if not options.quiet:
        print(describe(device, why, aliased, options.keep), file=sys.stderr, flush=True)
    return _start(options)


def describe(device, why, aliased, keep):
    """The one line on stderr: device, why, what is aliased, which real ones are left aside."""
    parts = [f"simt: {device}: {why}"]
    names = ", ".join(n for n in aliased if n != "keras") or tr("nothing yet", "暂无")
    parts.append(tr(f"simt's own: {names}", f"由 simt 提供: {names}"))
    for name in aliased:
        real = alias.find_real(name)
        if real and name == "keras":
            parts.append(tr(f"keras {real[1]} on simt", f"keras {real[1]} 运行在 simt 上"))
        elif real:
            what = f"{name} {real[1]}".rstrip()
            parts.append(
                tr(
                    f"real {what} found, not used; --keep {name}",
                    f"发现原版 {what}, 未使用; --keep {name} 可保留",
                )
            )
    if keep:
        parts.append(tr(f"kept real: {', '.join(keep)}", f"保留原版: {', '.join(keep)}"))
    return "; ".join(parts)


# --- running the program -------------------------------------------------------------------------


def _start(options):
    """Hands control to the program; its uncaught errors end the process as under python."""
    try:
        code = _prepare(options)
    except OSError as error:
        path = os.path.abspath(options.target)
        return _fail(
            tr(
                f"can't open file '{path}': [Errno {error.errno}] {error.strerror}",
                f"打不开文件 '{path}': [Errno {error.errno}] {error.strerror}",
            )
        )
    try:
        if code is None:
            _run_module(options)
        else:
            exec(code(), sys.modules["__main__"].__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        return _report(error)
    return 0


def _report(error):
    """Shows an uncaught error without our own frames; returns the exit code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    last = trace
    while last is not None and last.tb_next is not None:
        if last.tb_next.tb_frame.f_globals.get("__name__") in _OUR_FINDERS:
            last.tb_next = None  # a missing name is the program's line, not that of our finder
            break
        last = last.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
    if isinstance(error, KeyboardInterrupt):
        # Python notes an interrupt that nobody caught and ends the process by the signal itself.
        sys.excepthook = lambda *_: None
        raise error
    return 1


def _prepare(options):
    """Sets up __main__, sys.argv, sys.path; returns what makes the code, or None for a module."""
    kind, target = options.kind, options.target
    if kind == "-" and sys.stdin is not None and sys.stdin.isatty():
        _exec_python(["-", *options.args])
    sys.argv[:] = [target if kind == "script" else kind, *options.args]
    if kind == "-m":
        _set_path(os.getcwd())
        _new_main()
        return None
    if kind == "-c":
        _set_path("")
        _new_main()
        sources["<string>"] = target + "\n"
        return lambda: _command_code(target)
    if kind == "-":
        source = sys.stdin.buffer.read() if sys.stdin is not None else b""
        _set_path("")
        main = _new_main()
        main.__file__, main.__cached__ = "<stdin>", None
        sources["<stdin>"] = source
        return lambda: compile(source, "<stdin>", "exec", dont_inherit=True)
    path = os.path.abspath(target)
    if os.path.isdir(path) or path.endswith((".pyc", ".pyz", ".zip")):
        os.stat(path)
        _exec_python([target, *options.args])
    with open(path, "rb") as f:
        source = f.read()
    _set_path(os.path.dirname(os.path.realpath(path)))
    main = _new_main()
    main.__file__ = path
    main.__cached__ = None
    from importlib.machinery import SourceFileLoader

    main.__loader__ = SourceFileLoader("__main__", path)
    return lambda: compile(source, path, "exec", dont_inherit=True)


def _command_code(source):
    """The code of python -c; from Python 3.13 on its tracebacks show the lines."""
    code = compile(source + "\n", "<string>", "exec", dont_inherit=True)
    if sys.version_info >= (3, 13):
        import linecache

        register = getattr(linecache, "_register_code", None)
        if register is not None:
            register(code, source, "<string>")
    return code


def _run_module(options):
    """python -m MODULE."""
    import runpy

    runpy._run_module_as_main(options.target, alter_argv=True)


def _new_main():
    """A fresh __main__ in place of the command's own."""
    import builtins

    main = type(sys)("__main__")
    main.__builtins__ = builtins
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__loader__ = builtins.__loader__
    sys.modules["__main__"] = main
    return main


def _set_path(first):
    """Puts the program's folder where python put the command's."""
    if sys.flags.safe_path:
        return
    sys.path[0] = first


def _exec_python(args):
    """Goes on as a new interpreter, whose sitecustomize installs the aliases; never returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    flags = []
    if sys.flags.safe_path:
        flags.append("-P")
    os.execv(sys.executable, [sys.executable, *flags, *args])
