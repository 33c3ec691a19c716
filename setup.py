"""What setup.cfg cannot say: the innermost loops of extraction are compiled; where that fails, Python's serve."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(f"ncs.extract.{name}", [f"ncs/extract/{name}.c"], optional=True)
        for name in ("_words", "_documents", "_layout", "_tree")
    ]
)
