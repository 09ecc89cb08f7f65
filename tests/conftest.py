"""Settings of the tests."""

from hypothesis import HealthCheck, settings

# Compilation makes a first example slow; that is not what is tested.
settings.register_profile("ucbf", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ucbf")
