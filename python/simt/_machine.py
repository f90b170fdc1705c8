"""What the machine offers, read cheaply: CPU, SIMD level, threads, NVIDIA driver.

Shared by `simt run`, whose one line must cost next to nothing, and `simt doctor`.
"""

import os

_AVX512 = {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
_AVX2 = {"avx2", "fma", "f16c", "bmi1", "bmi2"}


def cpu_info(path="/proc/cpuinfo"):
    """(model name, set of feature flags) of the first processor; ('', set()) where unknown."""
    try:
        # The first processor's entry is within the first few KB; more would be made by the kernel.
        with open(path, "rb", buffering=0) as f:
            text = f.read(8192).decode("utf-8", "replace")
    except OSError:
        return "", set()
    model, flags = "", set()
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        key = key.strip()
        if not colon:
            continue
        if key == "model name" and not model:
            model = value.strip()
        elif key in ("flags", "Features") and not flags:
            flags = set(value.split())
    return model, flags


def simd_level(flags, machine=None):
    """The widest vector instructions here that simt can use: AVX-512, AVX2, NEON, generic."""
    if (machine or os.uname().machine) in ("aarch64", "arm64"):
        return "NEON"
    if flags >= _AVX512 | _AVX2:
        return "AVX-512"
    if flags >= _AVX2:
        return "AVX2"
    return "generic"


def simd_used():
    """The ones that it uses: SIMT_ISA chooses lower ones (base/isa.c)."""
    level = simd_level(cpu_info()[1])
    asked = os.environ.get("SIMT_ISA", "")
    if asked == "generic" and level != "NEON":
        return "generic"
    return "AVX2" if asked == "avx2" and level == "AVX-512" else level


def memory():
    """(free, total) bytes of the machine's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    try:
        return page * os.sysconf("SC_AVPHYS_PAGES"), total
    except (ValueError, OSError):  # not on macOS
        return total, total


def threads():
    """How many threads simt will use: SIMT_NUM_THREADS, else this process's processors."""
    asked = os.environ.get("SIMT_NUM_THREADS", "")
    if asked.isdecimal() and len(asked) < 20 and 0 < int(asked) < 1 << 31:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def cpu_name():
    """The CPU device as simt calls it, e.g. 'CPU (AVX-512, 2 threads)'."""
    count = threads()
    return f"CPU ({simd_used()}, {count} thread{'s' if count != 1 else ''})"


def nvidia_driver_loaded():
    """True when an NVIDIA kernel driver is there (Linux, or Windows through WSL2)."""
    return os.path.exists("/proc/driver/nvidia/version") or (
        os.path.exists("/dev/dxg") and os.path.exists("/usr/lib/wsl/lib/libcuda.so.1")
    )


def choose_device(asked=None):
    """(device, why) for 'auto', 'cpu' or 'gpu' (default SIMT_DEVICE, else auto), in words.

    Raises ValueError for another word, and LookupError with what is missing where 'gpu' is asked
    for: simt does not run on GPUs yet.
    """
    from simt._lang import tr

    asked = asked or os.environ.get("SIMT_DEVICE") or "auto"
    if asked not in ("auto", "cpu", "gpu"):
        raise ValueError(f"device '{asked}' is not one of auto, cpu, gpu")
    driver = nvidia_driver_loaded()
    if asked == "gpu":
        missing = (
            tr("an NVIDIA driver is loaded", "已有 NVIDIA 驱动")
            if driver
            else tr("no NVIDIA driver is loaded either", "也没有 NVIDIA 驱动")
        )
        raise LookupError(
            tr(
                f"device gpu: not in simt yet ({missing}); use --device cpu",
                f"设备 gpu: not in simt yet, simt 还不支持 GPU ({missing}); 请用 --device cpu",
            )
        )
    if asked == "cpu":
        why = tr("asked for", "按要求")
    elif driver:
        why = tr(
            "an NVIDIA driver is there, but GPUs are not in simt yet",
            "有 NVIDIA 驱动, 但 simt 还不支持 GPU",
        )
    else:
        why = tr("no NVIDIA driver", "没有 NVIDIA 驱动")
    return cpu_name(), why
