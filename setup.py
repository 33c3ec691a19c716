"""What setup.cfg cannot say: the innermost loops are compiled; where that fails, Python's serve."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(f"ncs.{name.replace('/', '.')}", [f"ncs/{name}.c"], optional=True)
        for name in ("extract/_words", "extract/_documents", "extract/_layout", "extract/_tree", "sources/_stamps")
    ]
)
