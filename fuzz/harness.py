"""What the fuzzers of Python code share: the core with sanitizers, and coverage."""

import hashlib
import importlib.util
import inspect
import os
import sys
from functools import cached_property
from pathlib import Path

import atheris


def load_core():
    """Take the compiled core that the variable RANKWISE_CORE names; call it before anything of rankwise is imported."""
    path = os.environ.get("RANKWISE_CORE")
    if not path:
        return
    spec = importlib.util.spec_from_file_location("rankwise._core", path)
    core = sys.modules["rankwise._core"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)


def instrument(*modules):
    """Count the branches of the functions of modules; an editable install hides its imports from the usual way."""
    for module in modules:
        for thing in list(vars(module).values()):
            if getattr(thing, "__module__", None) != module.__name__:
                continue
            for member in vars(thing).values() if isinstance(thing, type) else [thing]:
                function = _function_of(member)
                if inspect.isfunction(function):
                    atheris.instrument_func(function)


def run(one_input, mutate):
    """Fuzz with the options of the command line; the process ends with it."""

    def kept(data):
        try:
            one_input(data)
        except BaseException:  # the fuzzer keeps it too, but was seen to end before it did
            Path("raised-" + hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
            raise

    # Merging starts the program again, by its first word.
    atheris.Setup([f"{sys.executable} {sys.argv[0]}", *sys.argv[1:]], kept, custom_mutator=mutate)
    atheris.Fuzz()


def _function_of(member):
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    return getattr(member, "__func__", member)  # of class methods and static ones
