from __future__ import annotations

import pytest

from shotproof.core.errors import InputError
from shotproof.core.json_records import from_json


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), True, "5"])
def test_what_no_finite_number_holds_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="gap: expected a number, found"):
        from_json(value, float, "gap")
    assert from_json(10**18, float, "gap") == 1e18
