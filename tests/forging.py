"""Files of agents as somebody with bad intent would write them, and what to do with an agent that comes of one.

Every forgery has a digest that is right: whoever edits a file can compute that too. Nothing here needs pytest.
"""

import io
import json
import struct
import warnings
import zipfile
import zlib

import numpy as np

import ucbf
from ucbf import saving

WHOLE = (-1, 0, 1, 2**31 - 1, -(2**31), 2**62, -(2**63))
FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e100, 0.5)
HEADER = (None, -1, 0, 1, 10**6, 10**9, 2**62, 10**400, 1e308, True, "x", [], {}, [[1]], "9" * 9)


def contents(path):
    """The header and the other arrays of a file."""
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(arrays.pop("header").tobytes()), arrays


def packed(header, arrays):
    """The bytes of a file with this header, as an object or as bytes; the digest is as it was."""
    said = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = io.BytesIO()
    np.savez(content, **arrays, header=np.frombuffer(said, np.uint8))
    return content.getvalue()


def sealed(header, arrays):
    """The same with a digest that is right."""
    said = header if isinstance(header, bytes) else json.dumps(header).encode()
    others = {name: array for name, array in arrays.items() if name != "digest"}
    digest = saving._digest({**others, "header": np.frombuffer(said, np.uint8)})
    return packed(said, {**others, "digest": digest})


def forgeries(path):
    """(name, bytes) of every forgery of the file at ``path``."""
    yield from forged_arrays(path)
    yield from forged_headers(path)
    yield from forged_containers(path)


def forged_arrays(path, seed=0):
    """Every array full of each strange value, with one such value, and with random ones."""
    header, arrays = contents(path)
    rng = np.random.default_rng(seed)
    del arrays["digest"]
    for name, array in arrays.items():
        for what, forged in _fillings(array, rng):
            yield f"{name} {what}", sealed(header, {**arrays, name: forged})
        yield f"{name} missing", sealed(header, {k: v for k, v in arrays.items() if k != name})
        yield f"{name} longer", sealed(header, {**arrays, name: np.concatenate([np.atleast_1d(array)] * 2)})
        yield f"{name} of another type", sealed(header, {**arrays, name: array.astype(np.float32)})
        yield f"{name} of text", sealed(header, {**arrays, name: array.astype("U4")})


def _fillings(array, rng):
    if array.dtype == bool:
        yield from (("all false", ~array & array), ("all true", array | ~array), ("turned round", ~array))
        return
    whole = array.dtype.kind in "iu"
    limits = np.iinfo(array.dtype) if whole else np.finfo(array.dtype)
    for value in WHOLE if whole else WHOLE + FLOATS:
        if not whole or limits.min <= value <= limits.max:
            yield f"all {value}", np.full_like(array, value)
            if array.size > 1:
                one = array.copy()
                one.flat[rng.integers(array.size)] = value
                yield f"one {value}", one
    yield "a little random", rng.integers(0, 5, array.shape).astype(array.dtype)
    yield "moved by one", array + 1
    if whole:
        yield "random", rng.integers(limits.min, limits.max, array.shape, dtype=array.dtype)
    else:
        yield "random", rng.normal(size=array.shape) * 10.0 ** rng.uniform(-9, 300, array.shape)


def forged_headers(path):
    """Every number, text and list of the header replaced by each strange value, or left out."""
    header, arrays = contents(path)
    for place in _places(header):
        for value in HEADER:
            yield f"{place} = {value!r:.20}", sealed(_changed(header, place, value), arrays)
        yield f"{place} missing", sealed(_changed(header, place, ...), arrays)
    for name, said in {
        "nested": b"[" * 10**5,
        "no text": b"\xff\xfe{",
        "a list": b"[]",
        "a number": b"1e999",
        "nothing": b"",
    }.items():
        yield f"header {name}", sealed(said, arrays)


def _places(value, at=()):
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, part in inside:
        yield from _places(part, (*at, key))


def _changed(value, place, new):
    """A copy with the part at ``place`` replaced, or left out if ``new`` is an ellipsis."""
    value = json.loads(json.dumps(value))
    inside = value
    for key in place[:-1]:
        inside = inside[key]
    if new is ...:
        del inside[place[-1]]
    else:
        inside[place[-1]] = new
    return value


def forged_containers(path):
    """Zips that claim too much, unpack to too much, or are of kinds that nobody writes."""
    header, arrays = contents(path)
    good = sealed(header, arrays)
    yield "zeros", bomb(2**24)
    yield "zeros that claim to be more", bomb(2**24, 2**32 - 2)
    yield "zeros that claim to be less", bomb(2**24, 2**10)
    yield "an array that claims a terabyte", _zipped({"header": _npy("(1099511627776,)", b"12345678")})
    yield "an array that is not closed", _zipped({"header": _npy("((((((", b"")})
    yield "an array of negative size", _zipped({"header": _npy("(-1,)", b"")})
    yield "an array of too many axes", _zipped({"header": _npy("(" + "1," * 200 + ")", b"1")})
    yield "an array of objects", _zipped({"header": _npy("(1,)", b"12345678", "|O")})
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield f"packed in way {kind}", _zipped({"header": b"x" * 1000}, kind)
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        parts = {entry.filename: file.read(entry) for entry in file.infolist()}
    twice = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(twice, "w") as file:
        warnings.simplefilter("ignore")
        for name, content in [*parts.items(), *parts.items()]:
            file.writestr(name, content)
    yield "every name twice", twice.getvalue()
    at = good.rindex(b"PK\x01\x02")
    for field, size in (("version", 6), ("flags", 8), ("method", 10), ("crc", 16), ("packed", 20), ("size", 24)):
        for value in (b"\xff\xff", b"\x00\x00", b"\x01\x00"):
            yield f"the last entry's {field} {value!r}", good[: at + size] + value + good[at + size + 2 :]
    end = good.rindex(b"PK\x05\x06")
    for field in range(4, 22, 2):
        yield f"the end's field {field}", good[: end + field] + b"\xff\xff" + good[end + field + 2 :]


def _npy(shape, content, descr="|u1"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def _zipped(parts, kind=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", kind) as file:
        for name, part in parts.items():
            file.writestr(f"{name}.npy", part)
    return content.getvalue()


def bomb(size, claimed=None):
    """A zip, a thousandth of the size, whose header is a well-formed array of so many zeros; or claims to be."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = _npy(f"({size},)", b"")
    packed, crc = packer.compress(start), zlib.crc32(start)
    for _ in range(size >> 20):
        packed, crc = packed + packer.compress(bytes(2**20)), zlib.crc32(bytes(2**20), crc)
    packed += packer.flush()
    total, name = claimed or size + len(start), b"header.npy"
    about = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(packed), total, len(name), 0)
    local = b"PK\x03\x04" + about + name + packed
    entry = b"PK\x01\x02" + struct.pack("<H", 20) + about + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    return local + entry + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)


def load(path, **more):
    """The agent at ``path``, in its units or not, or the reason why it is refused; anything else is an error.

    more: what :func:`ucbf.load` needs
    """
    try:
        loaded = ucbf.load(path, **more)
    except ValueError as error:
        if str(path) not in str(error) or type(error) is not ValueError:
            raise
        return None, str(error)
    return loaded, ""


def use(agent):
    """Do everything with an agent that people do. An error is one of a working agent's own only where it may be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(agent, ucbf.Controller):
            str(agent.policy)
            agent.act(0, float(agent.agent.system.states[0] * agent.preset.unit))
            agent = agent.agent
        return _use(agent) if agent.system.space.is_line else _use_in_a_box(agent)


def _use(agent):
    system = agent.system
    low, high = system.disturbance_range or (0, 0)
    high = min(high, low + 100)  # a forged range may be too wide for a law that fills it
    law = ucbf.Disturbance(np.full(high - low + 1, 1 / (high - low + 1)), low=low)
    try:
        world = ucbf.World(system, law)
    except ValueError:  # another f, from which W may leave a strict space
        return
    rng = np.random.default_rng(0)
    for _ in range(40 // system.horizon + 1):
        s = system.states[0]
        for h in range(system.horizon):
            a = agent.act(h, s)
            assert system.allowed[h, s - system.state_offset, a]
            w = int(rng.integers(low, high + 1))
            after = system.states[int(system.advance(h, s - system.state_offset, a, w)[0])]
            agent.observe(h, s, a, after, disturbance=w)
            s = after
    if hasattr(agent, "q"):
        assert not np.isnan(agent.q).any()
    if hasattr(agent, "warm_start") and hasattr(agent, "model_check"):
        agent.warm_start(np.full((2, system.horizon), low))
        agent.model_check()
        assert np.isfinite(agent.learner.value).all()
        try:
            agent.certificate()
        except ValueError as error:  # it says why nothing is certified
            if "certified" not in str(error) and "proof" not in str(error) and "proved" not in str(error):
                raise
    ucbf.simulate(agent, world, 20)
    policy = agent.policy
    assert np.take_along_axis(system.allowed, policy[..., None], axis=2).all()


def _use_in_a_box(agent):
    system = agent.system
    low, high = system.space.low, system.space.high
    for h in range(system.horizon):
        assert 0 <= agent.act(h, low) < system.n_actions
        middle = (low + high) / 2
        agent.observe(h, middle, 0, system.advance(h, middle[None], np.zeros(1, int), 0 * low)[0][0])
    assert np.isfinite(agent.plan.v).all()
    assert np.allclose(agent.law.pmf.sum(axis=1), 1)
    agent.model_check()
