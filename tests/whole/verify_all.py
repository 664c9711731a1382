"""`make verify`: every case of every built-in composite, and whole models, on every kind of input.

Too long for the suite, which verifies one case of each composite.
"""

import pytest
from harness import CASES, model, random_args

from selfbyoc import verify
from selfbyoc.models.onnx_model import import_onnx, light_model


@pytest.mark.parametrize(("composite", "case"), CASES)
def test_case(composite, case):
    found = verify(model(composite, case, random_args(case)), composites=[composite])
    assert found.ok, str(found)
    assert found.counts == {"passed": 1}, str(found)


@pytest.mark.parametrize("name", ["squeezenet", "inception_v1", "resnet50", "inception_v2"])
def test_model(name, capsys):
    found = verify(import_onnx(light_model(name)), isolate=True)
    with capsys.disabled():
        print(f"\n{name}: {found.summary}")
    assert found.ok, str(found)
    assert set(found.counts) == {"passed"}, str(found)
