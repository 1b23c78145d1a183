"""What the fuzzers of Python code share: the core with sanitizers, coverage, and odd changes of JSON."""

import hashlib
import importlib.util
import inspect
import json
import os
import sys
from pathlib import Path

import atheris

from rankwise.cached import cached_property


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


def places(value):
    """Every place of a JSON value, as a container and a key."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def alter(header, rng, odd, names):
    """Replace, copy, rename or drop one part of a JSON value, which changes of single bytes hardly ever do.

    Parameters
    ----------
    odd : list
        What a part may become.
    names : list of str
        What a new part may be called.
    """
    spots = list(places(header))
    if not spots:
        return
    parent, key = rng.choice(spots)
    other, at = rng.choice(spots)
    kind = rng.random()
    if kind < 0.2 and isinstance(parent, dict):
        parent[rng.choice([str(at), *names])] = _copy(other[at])
    elif kind < 0.3:
        del parent[key]
    elif kind < 0.6:
        parent[key] = _copy(other[at])
    elif kind < 0.7 and isinstance(parent, dict):
        name = rng.choice([f"${key}", f"{key}_", *names])
        parent[name] = parent.pop(key)
    else:
        parent[key] = _copy(rng.choice(odd))


def _copy(value):
    return json.loads(json.dumps(value))
