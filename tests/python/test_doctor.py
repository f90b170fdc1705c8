"""simt doctor: what it sees, and that each problem comes with how to mend it."""

import json
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import standin
from simt import _machine, doctor

NO_TOOLKIT = {"nvcc": None, "version": None, "on_path": False}
DRIVER = {
    "gpu_on_pci": False,
    "kernel_driver": "",
    "wsl": False,
    "library": None,
    "library_error": "not found",
    "cuda_version": None,
    "init": None,
    "devices": [],
    "nvidia_smi": None,
}
PACKAGES = {"versions": {"numpy": "2.0"}, "extension": "x.so", "faces": [], "real": {}}
MEMORY = {"total": 1, "available": 1, "huge_pages": "madvise"}


@pytest.fixture(autouse=True)
def english(monkeypatch):
    monkeypatch.setenv("SIMT_LANG", "en")


def test_json_report_is_about_this_machine():
    path = os.path.dirname(standin.PACKAGE)
    status, out, err = standin.simt(path, "doctor", "--json")
    report = json.loads(out)
    assert status == 0, err
    assert report["cpu"]["threads"] == len(os.sched_getaffinity(0))
    flags = subprocess.run(
        ["grep", "-m1", "-E", "flags|Features", "/proc/cpuinfo"], capture_output=True
    )
    assert (report["cpu"]["simd"] == "AVX-512") == (b"avx512vl" in flags.stdout)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert abs(report["memory"]["total"] - total) < 0.02 * total
    assert report["packages"]["extension"].endswith(".so")
    assert report["device"]["name"].startswith("CPU (")
    assert all(p["what"] and p["mend"] for p in report["problems"])


def test_text_report_in_both_languages():
    path = os.path.dirname(standin.PACKAGE)
    text = standin.simt(path, "doctor")[1]
    assert "CPU: " in text and "device: CPU (" in text and "independent of NVIDIA" in text
    text = standin.simt(path, "doctor", SIMT_LANG="zh", PYTHONUTF8="1")[1]
    assert "设备: CPU (" in text and "无关" in text


def test_path_problems(tmp_path):
    stubs = tmp_path / "lib" / "stubs"
    stubs.mkdir(parents=True)
    environ = {
        "PATH": f"{tmp_path}:/no/such/folder:{tmp_path}",
        "LD_LIBRARY_PATH": f"{stubs}/::/also/not/there",
    }
    toolkit = {"nvcc": "/usr/local/cuda/bin/nvcc", "version": "12.4", "on_path": False}
    problems = doctor.check_paths(environ, toolkit)
    text = [what for what, _ in problems]
    assert len(problems) == 5
    assert "/no/such/folder" in text[0] and "stubs" in text[1] and "empty entry" in text[2]
    assert "/also/not/there" in text[3]
    assert problems[4][1] == "export PATH=/usr/local/cuda/bin:$PATH"
    assert doctor.check_paths({"PATH": str(tmp_path)}, NO_TOOLKIT) == []


def test_toolkit_off_path_is_found(tmp_path):
    nvcc = tmp_path / "cuda-12.4" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.4, V12.4.99'\n")
    nvcc.chmod(0o755)
    found = doctor.look_at_toolkit({"PATH": "/nowhere"}, places=[str(tmp_path)])
    assert found == {"nvcc": str(nvcc), "version": "12.4", "on_path": False}
    found = doctor.look_at_toolkit({"PATH": str(nvcc.parent)}, places=[])
    assert found["on_path"] and found["version"] == "12.4"


@pytest.mark.parametrize(
    "change, toolkit, what, mend",
    [
        ({"gpu_on_pci": True}, None, "no driver", "nvidia-driver"),
        ({"kernel_driver": "550.1"}, None, "libcuda.so.1 does not load: not found", "libcuda1"),
        ({"wsl": True}, None, "WSL2 without", "in Windows"),
        ({"library": "l", "init": "CUDA_ERROR_UNKNOWN"}, None, "CUDA_ERROR_UNKNOWN", "restart"),
        ({"library": "l", "init": "ok", "cuda_version": "12.2"}, "13.0", "newer", "update"),
    ],
)
def test_driver_problems(change, toolkit, what, mend):
    ((text, cure),) = doctor.check_driver(DRIVER | change, NO_TOOLKIT | {"version": toolkit})
    assert what in text and mend in cure


def test_no_gpu_is_no_problem():
    assert doctor.check_driver(DRIVER, NO_TOOLKIT) == []
    fine = {"library": "l", "init": "ok", "cuda_version": "13.0"}
    assert doctor.check_driver(DRIVER | fine, NO_TOOLKIT | {"version": "12.4"}) == []


def test_settings_problems():
    environ = {"OPENBLAS_CORETYPE": "Prescott", "SIMT_NUM_THREADS": "many", "SIMT_ISA": "avx512"}
    packages = PACKAGES | {"extension": None, "versions": {"numpy": None}}
    problems = doctor.check_settings(environ, "AVX2", MEMORY | {"huge_pages": "never"}, packages)
    cures = [cure for _, cure in problems]
    assert len(problems) == 6
    assert "pip install numpy" in cures and "unset OPENBLAS_CORETYPE" in cures
    assert doctor.check_settings({}, "AVX2", MEMORY, PACKAGES) == []


def test_driver_library_is_tried(tmp_path):
    # a libcuda of our own: two devices, CUDA 12.4; and one whose cuInit fails
    source = tmp_path / "cuda.c"
    source.write_text(
        """
#include <string.h>
int cuInit(unsigned f) { return STATUS; }
int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strcpy(s, d ? "B" : "A"); return 0; }
"""
    )
    for status in (0, 999):
        library = tmp_path / f"libcuda{status}.so"
        command = ["cc", "-shared", "-fPIC", f"-DSTATUS={status}", "-o", library, source]
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        if subprocess.run(command, env=env, check=False).returncode:
            pytest.skip("no C compiler")
        found = doctor.look_at_driver(str(library))
        assert found["cuda_version"] == "12.4"
        assert found["devices"] == ([] if status else ["A", "B"])
        assert found["init"] == ("CUDA_ERROR_UNKNOWN" if status else "ok")
    assert "no_such_lib" in doctor.look_at_driver("no_such_lib.so")["library_error"]


def test_cpu_info(tmp_path):
    text = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 fma f16c bmi1 bmi2\n\n"
    path = tmp_path / "cpuinfo"
    path.write_text(text + text.replace("Some", "Other"))
    model, flags = _machine.cpu_info(str(path))
    assert model == "Some CPU" and _machine.simd_level(flags, "x86_64") == "AVX2"
    assert _machine.simd_level(flags | _machine._AVX512, "x86_64") == "AVX-512"
    assert _machine.simd_level({"sse2"}, "x86_64") == "generic"
    assert _machine.simd_level(set(), "aarch64") == "NEON"
    assert _machine.cpu_info(str(tmp_path / "none")) == ("", set())


def test_choose_device(monkeypatch):
    monkeypatch.delenv("SIMT_DEVICE", raising=False)
    monkeypatch.setattr(_machine, "nvidia_driver_loaded", lambda: False)
    assert _machine.choose_device()[1] == "no NVIDIA driver"
    assert _machine.choose_device("cpu")[1] == "asked for"
    monkeypatch.setattr(_machine, "nvidia_driver_loaded", lambda: True)
    assert "not in simt yet" in _machine.choose_device("auto")[1]
    with pytest.raises(LookupError, match="not in simt yet"):
        _machine.choose_device("gpu")
    monkeypatch.setenv("SIMT_DEVICE", "tpu")
    with pytest.raises(ValueError, match="'tpu'"):
        _machine.choose_device()
