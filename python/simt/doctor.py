"""simt doctor: what this machine offers, which device programs will use and why, and what is wrong.

collect() looks and returns a plain dict (also `simt doctor --json`); its "problems" each say how to
mend them. Everything is read; nothing is changed, and no GPU memory is taken.
"""

import os
import sys

from simt import _machine, alias
from simt._lang import tr

# What cuInit and friends answer when a driver is there but does not work.
_CUDA_ERRORS = {
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}


# --- looking -------------------------------------------------------------------------------------


def _read(path):
    """The text of a small file, or '' if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(65536)
    except OSError:
        return ""


def look_at_memory():
    """Bytes in all and free, and the mode of transparent huge pages ('' where unknown)."""
    sizes = {}
    for line in _read("/proc/meminfo").splitlines():
        key, _, rest = line.partition(":")
        if key in ("MemTotal", "MemAvailable"):
            sizes[key] = int(rest.split()[0]) * 1024
    modes = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = modes.partition("[")[2].partition("]")[0]
    return {
        "total": sizes.get("MemTotal"),
        "available": sizes.get("MemAvailable"),
        "huge_pages": chosen,
    }


def pci_has_nvidia(root="/sys/bus/pci/devices"):
    """True when a display or 3D controller of NVIDIA is on the PCI bus."""
    try:
        devices = os.listdir(root)
    except OSError:
        return False
    return any(
        _read(f"{root}/{d}/vendor").strip() == "0x10de"
        and _read(f"{root}/{d}/class").startswith("0x03")
        for d in devices
    )


def look_at_driver(library="libcuda.so.1"):
    """The NVIDIA driver: kernel part, library, CUDA version, devices. Loads the library."""
    import ctypes
    import shutil

    kernel = _read("/proc/driver/nvidia/version").partition("\n")[0]
    version = next((w for w in kernel.split() if w[:1].isdigit() and "." in w), "")
    found = {
        "gpu_on_pci": pci_has_nvidia(),
        "kernel_driver": version,
        "wsl": os.path.exists("/dev/dxg"),
        "library": None,
        "library_error": None,
        "cuda_version": None,
        "init": None,
        "devices": [],
        "nvidia_smi": shutil.which("nvidia-smi"),
    }
    try:
        cuda = ctypes.CDLL(library)
        init, get_version = cuda.cuInit, cuda.cuDriverGetVersion
    except (OSError, AttributeError) as error:
        found["library_error"] = str(error)
        return found
    found["library"] = library
    number = ctypes.c_int()
    if get_version(ctypes.byref(number)) == 0:
        found["cuda_version"] = f"{number.value // 1000}.{number.value % 1000 // 10}"
    status = init(0)
    found["init"] = "ok" if status == 0 else _CUDA_ERRORS.get(status, f"error {status}")
    if status == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
        for index in range(number.value):
            device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
            cuda.cuDeviceGet(ctypes.byref(device), index)
            cuda.cuDeviceGetName(name, 256, device)
            found["devices"].append(name.value.decode("utf-8", "replace"))
    return found


def look_at_toolkit(environ=os.environ, places=("/usr/local", "/opt")):
    """The CUDA toolkit (simt needs none): nvcc, its version, whether it is on PATH."""
    import re
    import shutil
    import subprocess

    on_path = shutil.which("nvcc", path=environ.get("PATH", ""))
    folders = [environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")]
    for place in places:
        try:
            entries = sorted(os.listdir(place))
        except OSError:
            entries = []
        folders += [os.path.join(place, e) for e in entries if re.fullmatch(r"cuda(-[\d.]+)?", e)]
    nvcc = on_path
    for folder in folders:
        if nvcc is None and folder and os.access(f"{folder}/bin/nvcc", os.X_OK):
            nvcc = f"{folder}/bin/nvcc"
    version = None
    if nvcc:
        try:
            done = subprocess.run(
                [nvcc, "--version"], capture_output=True, text=True, timeout=20, check=False
            )
            match = re.search(r"release ([\d.]+)", done.stdout)
            version = match and match.group(1)
        except (OSError, subprocess.SubprocessError):
            pass
    return {"nvcc": nvcc, "version": version, "on_path": on_path is not None}


def look_at_packages():
    """The parts simt runs on, and the real libraries whose names it takes. Imports none of them."""
    from importlib import metadata
    from importlib.machinery import PathFinder

    versions = {}
    for name in ("numpy", "scipy-openblas32"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    package = os.path.dirname(os.path.abspath(__file__))
    core = PathFinder.find_spec("simt._core", [package])
    real = {}
    for name in alias.NAMES:
        found = alias.find_real(name)
        if found:
            real[name] = found[1] or "?"
    return {
        "versions": versions,
        "extension": core.origin if core else None,
        "faces": [n for n in alias.available() if n != "keras"],
        "keras": real.pop("keras", None),
        "real": real,
    }


# --- judging -------------------------------------------------------------------------------------


def check_paths(environ, toolkit):
    """Problems of PATH and LD_LIBRARY_PATH as (what, mend) pairs."""
    problems = []
    for variable in ("PATH", "LD_LIBRARY_PATH"):
        value = environ.get(variable, "")
        entries = value.split(os.pathsep) if value else []
        for entry in dict.fromkeys(entries):
            if not entry:
                problems.append(
                    (
                        tr(
                            f"{variable} has an empty entry, which means the current folder",
                            f"{variable} 里有空项, 它表示当前目录",
                        ),
                        tr(
                            f"remove the doubled, leading or trailing ':' from {variable}",
                            f"从 {variable} 里去掉多余的 ':'",
                        ),
                    )
                )
            elif not os.path.isdir(entry):
                problems.append(
                    (
                        tr(
                            f"{variable} names {entry}, which does not exist",
                            f"{variable} 里的 {entry} 不存在",
                        ),
                        tr(
                            f"remove it from {variable} (usually set in ~/.bashrc or ~/.profile)",
                            f"从 {variable} 里删去 (一般在 ~/.bashrc 或 ~/.profile 里设置)",
                        ),
                    )
                )
            elif variable == "LD_LIBRARY_PATH" and os.path.basename(entry.rstrip("/")) == "stubs":
                problems.append(
                    (
                        tr(
                            f"LD_LIBRARY_PATH names {entry}: the toolkit's stubs are for linking; "
                            "programs would load a libcuda that does nothing",
                            f"LD_LIBRARY_PATH 里有 {entry}: stubs 只供链接, "
                            "程序会加载一个什么也不做的 libcuda",
                        ),
                        tr("remove it from LD_LIBRARY_PATH", "从 LD_LIBRARY_PATH 里删去"),
                    )
                )
    if toolkit["nvcc"] and not toolkit["on_path"]:
        folder = os.path.dirname(toolkit["nvcc"])
        problems.append(
            (
                tr(
                    f"a CUDA toolkit is installed, but {folder} is not on PATH "
                    "(simt does not need it, other programs do)",
                    f"装有 CUDA 工具包, 但 {folder} 不在 PATH 里 (simt 不需要它, 其他程序需要)",
                ),
                f"export PATH={folder}:$PATH",
            )
        )
    return problems


def check_driver(driver, toolkit):
    """Problems of the NVIDIA driver as (what, mend) pairs."""
    problems = []
    if driver["library"] is None:
        if driver["wsl"] and os.path.exists("/usr/lib/wsl/lib/libcuda.so.1"):
            problems.append(
                (
                    tr(
                        "WSL2: libcuda.so.1 is in /usr/lib/wsl/lib, but is not found there",
                        "WSL2: libcuda.so.1 在 /usr/lib/wsl/lib, 但加载器找不到它",
                    ),
                    "export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH",
                )
            )
        elif driver["wsl"]:
            problems.append(
                (
                    tr(
                        "WSL2 without an NVIDIA driver",
                        "WSL2 里没有 NVIDIA 驱动",
                    ),
                    tr(
                        "if the PC has an NVIDIA GPU: install NVIDIA's driver in Windows "
                        "(not inside WSL), then wsl --shutdown",
                        "如果电脑有 NVIDIA GPU: 在 Windows 里 (不是在 WSL 里) 安装 NVIDIA 驱动, "
                        "然后 wsl --shutdown",
                    ),
                )
            )
        elif driver["kernel_driver"] or driver["nvidia_smi"]:
            problems.append(
                (
                    tr(
                        f"an NVIDIA driver is there, but libcuda.so.1 does not load: "
                        f"{driver['library_error']}",
                        f"有 NVIDIA 驱动, 但 libcuda.so.1 加载不了: {driver['library_error']}",
                    ),
                    tr(
                        "install the driver's library (Debian: libcuda1; Ubuntu: "
                        "libnvidia-compute-*); in a container start it with --gpus all",
                        "安装驱动的库 (Debian: libcuda1; Ubuntu: libnvidia-compute-*); "
                        "在容器里用 --gpus all 启动",
                    ),
                )
            )
        elif driver["gpu_on_pci"]:
            problems.append(
                (
                    tr(
                        "there is an NVIDIA GPU, but no driver",
                        "有 NVIDIA GPU, 但没有驱动",
                    ),
                    tr(
                        "install it (Ubuntu: sudo ubuntu-drivers install; "
                        "Debian: sudo apt install nvidia-driver), then restart",
                        "安装驱动 (Ubuntu: sudo ubuntu-drivers install; "
                        "Debian: sudo apt install nvidia-driver), 然后重启",
                    ),
                )
            )
    elif driver["init"] not in ("ok", "CUDA_ERROR_NO_DEVICE"):
        problems.append(
            (
                tr(
                    f"libcuda.so.1 loads, but cuInit answers {driver['init']}",
                    f"libcuda.so.1 能加载, 但 cuInit 返回 {driver['init']}",
                ),
                tr(
                    "restart (a driver was probably updated while loaded); for a stub library see "
                    "LD_LIBRARY_PATH; else install the driver anew",
                    "重启 (多半是驱动更新了但旧的还在内存里); 若是 stub 库, 请看 LD_LIBRARY_PATH; "
                    "否则重装驱动",
                ),
            )
        )
    elif _newer(toolkit["version"], driver["cuda_version"]):
        problems.append(
            (
                tr(
                    f"the CUDA toolkit ({toolkit['version']}) is newer than what the driver serves "
                    f"({driver['cuda_version']})",
                    f"CUDA 工具包 ({toolkit['version']}) 比驱动支持的 "
                    f"({driver['cuda_version']}) 新",
                ),
                tr(
                    "update the driver, or use a toolkit of its version",
                    "更新驱动, 或使用与之相配的工具包",
                ),
            )
        )
    return problems


def _newer(version, other):
    """True when version a.b is of a later major release than other; False where one is unknown."""
    if not version or not other:
        return False
    return int(version.split(".")[0]) > int(other.split(".")[0])


def check_settings(environ, simd, memory, packages):
    """Problems of settings and of simt's own parts as (what, mend) pairs."""
    problems = []
    if packages["extension"] is None:
        problems.append(
            (
                tr("simt's compiled part is not there", "simt 的编译部分不存在"),
                tr(
                    "in a clone: make build; else: pip install simt",
                    "在克隆里: make build; 否则: pip install simt",
                ),
            )
        )
    for name, version in packages["versions"].items():
        if version is None:
            problems.append(
                (tr(f"{name} is not installed", f"没有安装 {name}"), f"pip install {name}")
            )
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if environ.get(variable):
            problems.append(
                (
                    tr(
                        f"{variable}={environ[variable]} is set: matrix products may be slow",
                        f"设置了 {variable}={environ[variable]}: 矩阵乘法可能变慢",
                    ),
                    f"unset {variable}",
                )
            )
    count = environ.get("SIMT_NUM_THREADS")
    if count and not (count.isdecimal() and int(count) > 0):
        problems.append(
            (
                tr(
                    f"SIMT_NUM_THREADS={count} is not a number above 0",
                    f"SIMT_NUM_THREADS={count} 不是大于 0 的数",
                ),
                "unset SIMT_NUM_THREADS",
            )
        )
    if environ.get("SIMT_ISA", "").lower() == "avx512" and simd != "AVX-512":
        problems.append(
            (
                tr(
                    f"SIMT_ISA=avx512, but this CPU has {simd}",
                    f"SIMT_ISA=avx512, 但这个 CPU 只有 {simd}",
                ),
                "unset SIMT_ISA",
            )
        )
    if memory["huge_pages"] == "never":
        problems.append(
            (
                tr(
                    "transparent huge pages are off: large new arrays cost more time",
                    "透明大页已关闭: 新的大数组更慢",
                ),
                "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            )
        )
    return problems


def collect(environ=os.environ):
    """Everything the doctor knows, as a dict that json can write."""
    from simt import __version__

    model, flags = _machine.cpu_info()
    simd = _machine.simd_level(flags)
    memory, driver = look_at_memory(), look_at_driver()
    toolkit, packages = look_at_toolkit(environ), look_at_packages()
    problems = check_settings(environ, simd, memory, packages)
    problems += check_driver(driver, toolkit)
    problems += check_paths(environ, toolkit)
    try:
        device, why = _machine.choose_device()
    except (ValueError, LookupError) as error:
        device, why = None, str(error)
        problems.append((why, "unset SIMT_DEVICE"))
    return {
        "simt": __version__,
        "python": sys.version.split()[0],
        "system": f"{os.uname().sysname} {os.uname().release} {os.uname().machine}",
        "cpu": {"model": model, "simd": _machine.simd_used(), "threads": _machine.threads()},
        "memory": memory,
        "nvidia": driver,
        "toolkit": toolkit,
        "packages": packages,
        "device": {"name": device, "why": why},
        "not_yet": not_yet(packages),
        "problems": [{"what": what, "mend": mend} for what, mend in problems],
    }


def not_yet(packages):
    """What is planned and not there, in words."""
    things = [
        tr("running on NVIDIA GPUs, --soft-gpu", "在 NVIDIA GPU 上运行, --soft-gpu"),
        tr("raw CUDA C and PTX kernels", "CUDA C 与 PTX 内核"),
        tr("machine code on the CPU (the portable back end runs)", "CPU 机器码 (目前用可移植后端)"),
    ]
    faces = [n for n in alias.NAMES if n not in packages["faces"] and n != "keras"]
    return [*things, *([", ".join(faces)] if faces else [])]


# --- telling -------------------------------------------------------------------------------------


def _gigabytes(count):
    return "?" if count is None else f"{count / 2**30:.1f} GB"


def _driver_line(driver):
    if driver["library"] is None and not driver["kernel_driver"]:
        return tr("no driver found", "没有找到驱动")
    parts = [tr("driver", "驱动") + f" {driver['kernel_driver'] or '?'}"]
    if driver["cuda_version"]:
        parts.append(f"CUDA {driver['cuda_version']}")
    parts.append(", ".join(driver["devices"]) or tr("no device", "没有设备"))
    if driver["library"] is None:
        parts.append(tr("libcuda.so.1 does not load", "libcuda.so.1 加载不了"))
    return "; ".join(parts)


def _toolkit_line(toolkit):
    if not toolkit["nvcc"]:
        return tr("none (none is needed)", "没有 (不需要)")
    return f"{toolkit['version'] or '?'}, {toolkit['nvcc']}"


def _keras_line(version):
    if version is None:
        return tr(
            "not installed (pip install 'simt[keras]')", "没有安装 (pip install 'simt[keras]')"
        )
    from simt._missing import KERAS_VERSIONS

    return tr(
        f"{version}, with simt as its backend (it needs {KERAS_VERSIONS})",
        f"{version}, 以 simt 为后端 (需要 {KERAS_VERSIONS})",
    )


def _pairs(items):
    return ", ".join(f"{name} {version or '-'}" for name, version in items)


def render(report):
    """The report as text."""
    cpu, memory, packages = report["cpu"], report["memory"], report["packages"]
    real = _pairs(packages["real"].items()) or tr("none found", "没有")
    rows = [
        ("simt", f"{report['simt']}, Python {report['python']}, {report['system']}"),
        (
            "CPU",
            f"{cpu['model'] or '?'}, {cpu['simd']}, "
            + tr(f"{cpu['threads']} thread(s)", f"{cpu['threads']} 个线程"),
        ),
        (
            tr("memory", "内存"),
            f"{_gigabytes(memory['total'])}, "
            + tr("free", "可用")
            + f" {_gigabytes(memory['available'])}, "
            + tr("huge pages", "大页")
            + f": {memory['huge_pages'] or '?'}",
        ),
        ("NVIDIA", _driver_line(report["nvidia"])),
        (tr("CUDA toolkit", "CUDA 工具包"), _toolkit_line(report["toolkit"])),
        (tr("runs on", "依赖"), _pairs(packages["versions"].items())),
        (tr("simt's own", "simt 提供"), ", ".join(packages["faces"]) or "-"),
        (tr("real ones", "原版库"), real),
        ("Keras", _keras_line(packages["keras"])),
        (
            tr("device", "设备"),
            f"{report['device']['name'] or '-'}: {report['device']['why']}",
        ),
        (tr("not there yet", "还没有"), "; ".join(report["not_yet"])),
    ]
    lines = [f"{name}: {text}" for name, text in rows]
    problems = report["problems"]
    if not problems:
        lines.append(tr("problems: none", "问题: 无"))
    else:
        lines.append(tr(f"problems: {len(problems)}", f"问题: {len(problems)}"))
    for number, problem in enumerate(problems, 1):
        lines.append(f"  {number}. {problem['what']}")
        lines.append("     " + tr("mend: ", "办法: ") + problem["mend"])
    lines.append(
        tr(
            "simt is independent of NVIDIA and of CuPy's, Numba's, PyTorch's, TensorFlow's makers.",
            "simt 与 NVIDIA 以及 CuPy、Numba、PyTorch、TensorFlow 的作者无关。",
        )
    )
    return "\n".join(lines)


def main(as_json=False):
    """Prints the report; 1 if simt itself cannot run here, else 0."""
    report = collect()
    if as_json:
        import json

        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        print(render(report))
    packages = report["packages"]
    broken = packages["extension"] is None or None in packages["versions"].values()
    return 1 if broken else 0
