"""What setup.cfg cannot say: the innermost loops of extraction are compiled; where that fails, Python's serve."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("ncs.extract._words", ["ncs/extract/_words.c"], optional=True)])
