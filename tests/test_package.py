import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import ucbf
from ucbf.registration import PRESETS


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_ucbf_imports_nothing_heavy():
    heavy = "gymnasium numpy numba scipy matplotlib pyarrow ray pandas hypothesis jinja2"
    assert python(f"import sys, ucbf; print([m for m in '{heavy}'.split() if m in sys.modules])") == "[]"


def test_pictures_of_a_page_import_no_studies():
    assert (
        python("import sys, ucbf.figures; print([m for m in ('ucbf.studies', 'pydantic') if m in sys.modules])") == "[]"
    )


ENVIRONMENTS = tuple(sorted((*PRESETS, "Random", "World")))


@pytest.mark.parametrize("order", ["gymnasium, ucbf", "gymnasium.spaces, ucbf", "ucbf.envs", "gymnasium, ucbf.envs"])
def test_the_environments_are_registered_once(order):
    code = f"""
        import warnings; warnings.simplefilter("error")  # as where one is registered twice
        import {order}, gymnasium
        assert gymnasium.make("ucbf/Random-v0").observation_space == gymnasium.spaces.Discrete(25)
        print(sorted(id for id in gymnasium.registry if id.startswith("ucbf/")))
    """
    assert python(textwrap.dedent(code)) == str([f"ucbf/{name}-v0" for name in ENVIRONMENTS])


@pytest.mark.parametrize("before", ["", "import ucbf; "])
def test_an_environment_is_made_by_the_name_of_its_module_alone(before):
    code = f"{before}import gymnasium; print(gymnasium.make('ucbf.envs:ucbf/Inventory-v0', horizon=3).spec.id)"
    assert python(code) == "ucbf/Inventory-v0"
    code = f"{before}import gymnasium; print(gymnasium.make_vec('ucbf.envs:ucbf/Random-v0', num_envs=2).num_envs)"
    assert python(code) == "2"


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
