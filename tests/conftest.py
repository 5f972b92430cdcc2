"""For all tests: hypothesis measures no time, as a busy machine would fail a test that is right."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kesoku", deadline=None)
settings.load_profile("kesoku")
