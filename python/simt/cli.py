"""The command simt: reads its options and calls the part that does the work.

Nothing is imported before it is needed: `simt run` must start a program as fast as python does.
Exit codes: the program's own for `run`; 2 for a wrong command line and for what is not in simt yet.
"""

import sys

from simt._lang import tr

COMMANDS = ("run", "doctor", "show", "cc", "profile", "bench", "config")


class Usage(Exception):
    """A wrong command line; the text says what is wrong with it."""


def _help():
    return tr(
        """usage: simt COMMAND ...

  run [OPTIONS] SCRIPT|-m MODULE|-c CODE|- [ARGS]
                  runs a program with cupy, numba, torch, torchvision meaning simt's
      --device auto|cpu|gpu  where to run (gpu: not in simt yet)
      --keep NAME            leave NAME alone: import NAME finds the real one
      -q                     no line about device and names
      --check --explain --profile FILE --soft-gpu   (not in simt yet)
  doctor [--json] what this machine offers, and what is wrong with it
  bench           speed against other libraries (from a clone of the repository)
  show, cc, profile, config                         (not in simt yet)
  --version, --help
""",
        """用法: simt 命令 ...

  run [选项] 脚本|-m 模块|-c 代码|- [参数]
                  运行程序, 其中 cupy、numba、torch、torchvision 都是 simt 的
      --device auto|cpu|gpu  在哪里运行 (gpu 还没有)
      --keep 名字            不替换该名字: import 得到原来的库
      -q                     不打印设备和名字那一行
      --check --explain --profile 文件 --soft-gpu   (还没有)
  doctor [--json] 这台机器有什么, 有什么问题
  bench           与其他库比较速度 (在仓库的克隆里)
  show, cc, profile, config                         (还没有)
  --version, --help
""",
    )


def _fail(text):
    """Prints one line to stderr; returns exit code 2."""
    print(f"simt: {text}", file=sys.stderr)
    return 2


def _not_yet(what):
    return _fail(tr(f"{what}: not in simt yet", f"{what}: not in simt yet, simt 还没有"))


def main(argv=None):
    """The console script; returns the exit code (a program run by `run` may raise SystemExit)."""
    args = sys.argv[1:] if argv is None else list(argv)
    if not args:
        print(_help(), file=sys.stderr, end="")
        return 2
    command, rest = args[0], args[1:]
    if command in ("-h", "--help", "help"):
        print(_help(), end="")
        return 0
    if command in ("-V", "--version"):
        from simt import __version__

        print(f"simt {__version__}")
        return 0
    if command not in COMMANDS:
        if command.endswith(".py"):
            return _fail(
                tr(
                    f"a program is run by: simt run {command}",
                    f"运行程序请输入: simt run {command}",
                )
            )
        return _fail(
            tr(
                f"'{command}' is no command; one of {', '.join(COMMANDS)} (simt --help)",
                f"没有命令 '{command}'; 可用的有 {', '.join(COMMANDS)} (simt --help)",
            )
        )
    try:
        return _DO.get(command, lambda _: _not_yet(f"simt {command}"))(rest)
    except Usage as error:
        return _fail(f"{command}: {error}")


def _run(args):
    from simt import _run

    return _run.main(args)


def _doctor(args):
    from simt import doctor

    unknown = [a for a in args if a != "--json"]
    if unknown:
        raise Usage(tr(f"unknown option {unknown[0]}", f"未知选项 {unknown[0]}"))
    return doctor.main(as_json="--json" in args)


def _bench(args):
    import os

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    script = os.path.join(root, "bench", "run.py")
    if not os.path.exists(script):
        return _fail(
            tr(
                "bench: its programs are in the repository, not in the package (make bench)",
                "bench: 测速程序在仓库里, 不在安装包里; 请克隆仓库后运行 make bench",
            )
        )
    os.execv(sys.executable, [sys.executable, script, *args])


_DO = {"run": _run, "doctor": _doctor, "bench": _bench}
