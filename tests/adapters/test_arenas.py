"""Threads of a controller share few arenas of the C library."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, sys, threading
from hybrid.adapters.arenas import limit_arenas
if sys.argv[1] == "limited":
    assert limit_arenas(2)
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
everybody = threading.Barrier(8)
def work():
    everybody.wait()
    libc.malloc(100_000)
    everybody.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, ctypes.c_void_p(file))
libc.fclose(ctypes.c_void_p(file))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="needs glibc")
def test_threads_share_two_arenas_when_that_is_said(tmp_path: Path) -> None:
    assert arena_count(tmp_path / "free", "free") > 2

    assert arena_count(tmp_path / "limited", "limited") == 2


def arena_count(path: Path, word: str) -> int:
    subprocess.run([sys.executable, "-c", PROGRAM, word, str(path)], check=True)
    return path.read_text(encoding="utf-8").count("<heap nr=")
