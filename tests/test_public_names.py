"""The public names are listed in one place, exist, and do not drift; importing the package stays light."""

import re
import subprocess
import sys
import types
from pathlib import Path

import shotproof


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    for name in shotproof.__all__:
        value = getattr(shotproof, name)
        if isinstance(value, type | types.FunctionType):
            assert value.__doc__, name


def test_names_for_type_checkers_are_the_same() -> None:
    source = Path(str(shotproof.__file__)).read_text()
    listed = set(re.findall(r"import (\w+) as \1\n", source))
    assert listed == set(shotproof.__all__) - {"__version__"}


def test_importing_is_light() -> None:
    code = "import sys, shotproof, shotproof.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "typer" in loaded
    assert not {"torch", "scipy", "pyarrow", "numpy", "PIL"} & set(loaded)
