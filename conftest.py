"""Settings of the tests, of those in the documentation too."""

import pytest
from hypothesis import HealthCheck, settings

collect_ignore = ["docs/conf.py", "docs/notebooks.py"]  # tools of the manual
collect_ignore_glob = ["docs/gallery/*"]  # tests/test_manual.py runs its pages, with their pictures

# Compilation makes a first example slow; that is not what is tested.
settings.register_profile("ucbf", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ucbf")


@pytest.fixture(autouse=True, scope="session")
def _in_a_folder_of_its_own(tmp_path_factory):
    """Run where files that examples write do no harm."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("here"))
        yield
