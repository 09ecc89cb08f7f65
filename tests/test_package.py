import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import ucbf


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_ucbf_imports_nothing_heavy():
    heavy = "gymnasium numpy numba scipy matplotlib pyarrow ray pandas hypothesis quantecon"
    assert python(f"import sys, ucbf; print([m for m in '{heavy}'.split() if m in sys.modules])") == "[]"


def test_importing_ucbf_makes_the_environments_known():
    for order in ("ucbf, gymnasium", "gymnasium, ucbf", "ucbf.envs, gymnasium", "gymnasium.spaces, ucbf"):
        code = f"import {order}; print(gymnasium.make('ucbf/Random-v0').observation_space)"
        assert python(code) == "Discrete(25)"


def test_every_public_name_is_there():
    for name in ucbf.__all__:
        assert getattr(ucbf, name) is not None
    assert {"System", "World", "UCBf", "simulate", "load"} <= set(dir(ucbf))
    with pytest.raises(AttributeError, match="no attribute 'UCBF'; did you mean 'UCBf'"):
        _ = ucbf.UCBF


def test_it_works_where_compiled_code_cannot_be_kept():
    code = """
        import numba.core.caching as c
        class Nowhere:
            @classmethod
            def from_function(cls, function, path): return None
        c.CacheImpl._locator_classes = [Nowhere]
        import ucbf
        print(ucbf.optimal(ucbf.random_world(n_states=3, lipschitz=None)).v.shape)
    """
    assert python(textwrap.dedent(code)) == "(11, 3)"


def test_functions_are_not_hidden_by_modules_of_the_same_name():
    code = "import ucbf.simulation, ucbf.planning, ucbf; print(callable(ucbf.simulate), callable(ucbf.optimal))"
    assert python(code) == "True True"


def test_it_works_from_a_zip_file(tmp_path):
    package = Path(ucbf.__file__).parent
    with zipfile.ZipFile(tmp_path / "ucbf.zip", "w") as archive:
        for path in [*package.rglob("*.py"), package / "__init__.pyi"]:
            archive.write(path, path.relative_to(package.parent))
    code = f"""
        import os, sys
        os.environ["NUMBA_CACHE_DIR"] = {str(tmp_path)!r}
        sys.path.insert(0, {str(tmp_path / "ucbf.zip")!r})
        import ucbf
        print(ucbf.__file__, ucbf.optimal(ucbf.random_world(n_states=3, lipschitz=None)).v.shape)
    """
    assert python(textwrap.dedent(code)) == f"{tmp_path}/ucbf.zip/ucbf/__init__.py (11, 3)"
