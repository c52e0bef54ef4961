"""Modules that are loaded when they are first used."""

import subprocess
import sys

import pytest

from notewell.store.lazy import LazyModule


def test_a_module_is_loaded_by_its_first_use() -> None:
    code = (
        "import sys; from notewell.store.lazy import LazyModule; m = LazyModule('colorsys');"
        " print('colorsys' in sys.modules); m.rgb_to_hsv(0, 0, 0); print('colorsys' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]


def test_a_name_that_a_module_lacks_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = LazyModule("colorsys").nothing
