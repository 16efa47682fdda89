import sys

import pytest

from limis import errors


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name.endswith("Error")])
def test_every_error_can_be_caught_as_the_base_and_as_value_error(name):
    with pytest.raises(errors.LimisError) as caught:
        raise getattr(errors, name)("what went wrong")
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == "what went wrong"


def test_require_returns_the_module():
    assert errors.require("json.decoder", extra="plots") is sys.modules["json.decoder"]


def test_require_names_the_package_and_the_extra_in_one_line():
    with pytest.raises(ImportError) as caught:
        errors.require("no_such_package.part", extra="peers")
    assert isinstance(caught.value, errors.MissingExtraError)
    assert str(caught.value) == ('no_such_package is not installed; get it with: pip install "limis-xai[peers]"')


def test_require_does_not_hide_why_an_installed_package_is_broken(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import a_dependency_that_is_absent\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_dependency_that_is_absent"):
        errors.require("broken_package", extra="peers")
