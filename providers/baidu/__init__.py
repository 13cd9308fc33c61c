"""Baidu AI Cloud: instances of BCC (Baidu Cloud Compute) through the vendor's Python SDK.

The SDK (`bce-python-sdk`, imported as `baidubce`) is loaded when the first call is made. What
could be checked without an account, and what could not, is in docs/fidelity/baidu.md.
"""

from __future__ import annotations

from providers.baidu.provider import BaiduProvider, make

__all__ = ["BaiduProvider", "make"]
