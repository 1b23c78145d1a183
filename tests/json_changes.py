"""Odd changes of a JSON value, which changes of single bytes hardly ever make."""

import marshal


def places(value):
    """Return every place of a JSON value, as a container and a key."""
    found, waiting = [], [value]
    for inside in waiting:
        keys = inside if type(inside) is dict else range(len(inside)) if type(inside) is list else ()
        for key in keys:
            found.append((inside, key))
            if type(inside[key]) in {dict, list}:
                waiting.append(inside[key])
    return found


def alter(header, rng, odd, names):
    """Replace, copy, rename or drop one part of a JSON value.

    Parameters
    ----------
    odd : list
        What a part may become.
    names : list of str
        What a new part may be called.
    """
    spots = places(header)
    if not spots:
        return
    parent, key = rng.choice(spots)
    other, at = rng.choice(spots)
    kind = rng.random()
    if kind < 0.2 and isinstance(parent, dict):
        parent[rng.choice([str(at), *names])] = copied(other[at])
    elif kind < 0.3:
        del parent[key]
    elif kind < 0.6:
        parent[key] = copied(other[at])
    elif kind < 0.7 and isinstance(parent, dict):
        name = rng.choice([f"${key}", f"{key}_", *names])
        parent[name] = parent.pop(key)
    else:
        parent[key] = copied(rng.choice(odd))


def copied(value):
    """Return a copy of a JSON value that shares nothing with it."""
    return marshal.loads(marshal.dumps(value))
