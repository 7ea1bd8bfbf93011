"""What holds for every test."""

from hypothesis import settings

# A deadline would be a test of the machine: examples take as long as it lets them.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
