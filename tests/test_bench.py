"""``limis bench``: all methods on the same small problem. How fast they are is no test's business."""

import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from small_data import small

from limis import LimisExplainer
from limis.cli.main import main
from limis.datasets import load_facebook
from limis.errors import InputError, MissingExtraError
from limis.experiments import bench, black_boxes, real_problem, write_page
from limis.experiments.bench import side_by_side, stages
from limis.experiments.bench.side_by_side import COMPARISONS
from limis.training import slopes

SHAP = ("TreeSHAP", "TreeSHAP, reference", "KernelSHAP")


@pytest.fixture(scope="module", autouse=True)
def small_data(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing shap warns of what matplotlib will do some day
        pytest.importorskip("shap")
    loaders = {"Adult": lambda: small("classification"), "Facebook": lambda: small("regression")}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIMIS_CACHE", str(tmp_path_factory.mktemp("kept")))
        patched.setattr(real_problem, "LOADERS", loaders)
        patched.setattr(black_boxes, "QUICK_TREES", 5)
        patched.setattr(slopes, "STEPS", 20)
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The file that a run of all methods leaves."""
    path = tmp_path_factory.mktemp("results") / "bench-adult.json"
    assert main(["bench", "adult", "--quick", "--profile", "-o", str(path)]) == 0
    return path


@pytest.fixture
def found(kept):
    return json.loads(kept.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def explainer():
    data = small("regression")
    model = black_boxes.fit_black_box("XGBoost", "regression", data.frame, data.target.to_numpy(), quick=True)
    return LimisExplainer(model, surrogate="ridge").fit(data.frame)


def test_every_method_is_measured(found):
    assert [line["method"] for line in found["results"]] == list(bench.METHODS)
    for line in found["results"]:
        numbers = [line["ms"], line["alone_ms"], line["fit_seconds"], *line["ms_of_rounds"]]
        assert all(0 < number < math.inf for number in numbers), line
        assert line["nse"] <= 1
        assert (line["skill"] is None) == (line["method"] in (*SHAP, "LIME, encoded"))
        assert len(line["ms_of_rounds"]) == len(line["alone_ms_of_rounds"]) == bench.QUICK.rounds
        assert line["ms"] == np.median(line["ms_of_rounds"])
        assert (line["reasons_ms"] is not None) == (line["method"] == "LIMIS curves")
        assert line["alone_ms"] == np.median(line["alone_ms_of_rounds"])


def test_shap_values_sum_to_the_output_and_others_miss_it(found):
    nse = {line["method"]: line["nse"] for line in found["results"]}
    assert all(nse[name] == pytest.approx(1, abs=1e-6) for name in SHAP)
    # Curves' stand-in can nearly repeat so small a black box, and still does not sum to its output.
    assert all(nse[name] < 1 - 1e-9 for name in nse if name not in SHAP)


def test_slow_methods_explain_other_rows_in_every_round(found):
    rows = {line["method"]: (line["rows"], line["together"]) for line in found["results"]}
    size = bench.QUICK
    assert (
        rows["LIMIS ridge"] == rows["LIMIS tree"] == rows["LIMIS curves"] == rows["TreeSHAP"] == (size.rows, size.rows)
    )
    assert rows["LIME"] == (size.rounds * size.lime_rows, size.lime_rows)
    assert rows["KernelSHAP"] == (size.rounds * size.kernel_rows, size.kernel_rows)


def test_ratios_are_quotients_of_medians(found):
    by_name = {line["method"]: line for line in found["results"]}
    times = {line["ratio"]: line["times"] for line in found["ratios"]}
    assert list(times) == [one.words for one in COMPARISONS]
    assert times["LIME / LIMIS ridge"] == by_name["LIME"]["ms"] / by_name["LIMIS ridge"]["ms"]
    assert times["LIME / LIMIS tree"] == by_name["LIME"]["ms"] / by_name["LIMIS tree"]["ms"]
    alone = times["LIME / LIMIS ridge, one row, without the black box's time"]
    assert alone == by_name["LIME"]["alone_ms"] / by_name["LIMIS ridge"]["alone_ms"]
    fit = times["400 explanations by LIME / fit of LIMIS ridge"]
    assert fit == pytest.approx(400 * by_name["LIME"]["ms"] / 1000 / by_name["LIMIS ridge"]["fit_seconds"])


def test_curves_are_written_out_beside_their_explanations(found):
    by_name = {line["method"]: line for line in found["results"]}
    curves = by_name["LIMIS curves"]
    assert curves["with_curves_ms"] > min(curves["ms_of_rounds"])
    assert all(line["with_curves_ms"] is None for name, line in by_name.items() if name != "LIMIS curves")
    times = {line["ratio"]: line["times"] for line in found["ratios"]}
    assert times["TreeSHAP / LIMIS curves, written out"] == by_name["TreeSHAP"]["ms"] / curves["with_curves_ms"]
    assert found["small_fit"]["cpu_seconds"] > 0
    assert found["small_fit"]["black_box_cpu_seconds"] > 0
    assert "rows: " in bench.ratio_lines(found)[-1]


def test_lime_asks_the_black_box_within_its_time(found):
    lime = next(line for line in found["results"] if line["method"] == "LIME")
    assert all(own < all_ for own, all_ in zip(lime["alone_ms_of_rounds"], lime["ms_of_rounds"], strict=True))


def test_shares_of_the_stages_sum_to_one(found):
    profiles = {(one["surrogate"], one["rows"]): one for one in found["profiles"]}
    assert set(profiles) == {(kind, rows) for kind in ("ridge", "tree", "curves") for rows in (bench.QUICK.rows, 1)}
    for one in profiles.values():
        assert tuple(one["shares"]) == stages.STAGES
        assert sum(one["shares"].values()) == pytest.approx(1)
        assert min(one["shares"].values()) >= 0
        assert all(one["shares"][stage] > 0 for stage in ("encode", "black box", "retrieve", "fit", "check", "result"))
        by_function = sum(line["ms"] for line in one["functions"])
        assert by_function == pytest.approx(one["ms"] * (1 - one["shares"]["other"]))


def test_the_machine_is_described(found):
    assert found["processor"]
    assert found["threads"]["torch"] >= 1
    assert {"shap", "lime", "xgboost"} <= set(found["versions"])
    assert found["command"] == "limis bench adult --profile --quick"


def test_the_results_have_a_place_on_the_page(kept):
    page = write_page(kept.parent).read_text(encoding="utf-8")
    assert "## bench-adult\n" in page
    assert "| KernelSHAP |" in page
    assert "LIME / LIMIS ridge: " in page
    assert "## bench-adult-profile\n" in page
    assert "| black box |" in page
    assert "](bench-adult.json)" in page


def test_the_command_prints_a_table_and_the_ratios(capsys):
    assert main(["bench", "facebook", "--quick", "--rows", "20", "--methods", "treeshap"]) == 0
    printed = capsys.readouterr()
    assert "Facebook, XGBoost" in printed.out
    assert "TreeSHAP / LIMIS ridge: " in printed.out
    assert "KernelSHAP:" not in printed.out
    assert "TreeSHAP: shap.TreeExplainer of" in printed.out
    assert "wanted" not in printed.out  # that is for Adult in full
    assert "fitting TreeSHAP" in printed.err


def test_what_is_wanted_stands_beside_the_ratios():
    results = [{"method": "LIMIS ridge", "ms": 0.5, "alone_ms": 1.0, "fit_seconds": 50.0}]
    results.append({"method": "LIME", "ms": 125.0, "alone_ms": 30.0})
    lines = bench.ratio_lines({"ratios": side_by_side.ratios(results, wanted=True)})
    assert lines[0] == "LIME / LIMIS ridge: 250× (wanted: at least 200×)"
    assert lines[-1] == "400 explanations by LIME / fit of LIMIS ridge: 1× (wanted: at least 1×)"
    assert len(lines) == 3


def test_an_unknown_data_set_is_refused_by_naming_those_there_are(capsys):
    with pytest.raises(InputError, match=r"'iris'.* adult, facebook"):
        bench.measure("iris")
    assert main(["bench", "iris"]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in (*bench.DATA, "trees"))


def test_an_unknown_method_is_refused_by_naming_those_there_are():
    with pytest.raises(InputError, match=r"'magic'.* LIMIS ridge, .*, MAPLE"):
        bench.measure("adult", bench.QUICK, ["magic"])


def test_too_few_rows_for_the_rounds_are_refused():
    with pytest.raises(InputError, match="5 rounds need at least 10 rows, not 9"):
        bench.measure("adult", bench.Size().with_rows(9))


@pytest.mark.parametrize(("package", "method"), [("shap", "TreeSHAP"), ("shap", "KernelSHAP"), ("lime", "LIME")])
def test_a_missing_package_is_told_before_any_work(package, method, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name, name=package)

    monkeypatch.setattr("limis.errors.importlib.import_module", absent)
    monkeypatch.setattr(side_by_side, "RealProblem", lambda *_, **__: pytest.fail("work was begun"))
    with pytest.raises(MissingExtraError, match=rf'{package} is not installed.*"limis-xai\[peers\]"'):
        bench.measure("adult", bench.QUICK, [method])


def test_options_of_explainers_are_refused_for_trees(capsys):
    assert main(["bench", "trees", "--profile"]) == 1
    assert "--profile are for explainers" in capsys.readouterr().err


def test_a_call_within_a_call_has_its_own_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(stages.time, "perf_counter", lambda: now[0])
    watch = stages.Watch()

    def inner():
        now[0] += 3

    def outer():
        now[0] += 1
        timed_inner()
        timed_inner()

    timed_inner = watch.watched("fit", "inner", inner)
    watch.watched("retrieve", "outer", outer)()
    assert watch.seconds == {("fit", "inner"): 6.0, ("retrieve", "outer"): 1.0}


def test_watching_changes_no_explanation_and_leaves_nothing_behind(explainer):
    rows = small("regression").frame[:5]
    before = [vars(owner)[name] for _, owner, name in stages.PLACES]
    plain = explainer.explain(rows)
    with stages.watching() as watch:
        watched = explainer.explain(rows)
        pd.testing.assert_frame_equal(watched.fidelity, plain.fidelity)
    np.testing.assert_array_equal(watched.fits.coefficients, plain.fits.coefficients)
    assert watch.seconds["check", "Explanations.fidelity"] > 0
    with pytest.raises(KeyError), stages.watching():
        raise KeyError
    assert [vars(owner)[name] for _, owner, name in stages.PLACES] == before


def test_growth_is_measured_for_each_size_and_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    try:
        load_facebook()
    except InputError as error:
        pytest.skip(str(error))
    assert main(["bench", "growth", "--quick", "-o", str(tmp_path / "growth.json")]) == 0
    shown = capsys.readouterr().out
    found = json.loads((tmp_path / "growth.json").read_text())
    assert [line["rows"] for line in found["growth"]] == [150, 180]
    measured = [[line["explain_ms"], line["fit_seconds"], line["peak_gib"]] for line in found["growth"]]
    assert np.isfinite(measured).all()
    assert found["command"] == "limis bench growth --quick"
    assert (tmp_path / "growth.png").stat().st_size > 1000
    assert "training rows" in shown
    bounds = ["bench", "growth", "--quick", "--sizes", "160", "--without-bounds", "-o", str(tmp_path / "growth-2.json")]
    assert main(bounds) == 0
    assert [line["bounded"] for line in json.loads((tmp_path / "growth-2.json").read_text())["growth"]] == [True, False]
    curves = ["bench", "growth", "--quick", "--sizes", "160", "--surrogate", "curves"]
    assert main([*curves, "-o", str(tmp_path / "growth-curves.json")]) == 0
    line = json.loads((tmp_path / "growth-curves.json").read_text())["growth"][0]
    assert line["surrogate"] == "curves"
    assert line["with_contributions_ms"] > 0
    write_page(tmp_path)
    assert "explanations a second" in (tmp_path / "README.md").read_text()


def test_the_rise_of_memory_is_that_of_what_was_made():
    # In a process of its own: whatever else gives memory back meanwhile would count against it.
    program = (
        "import numpy as np\n"
        "from limis.experiments.bench.memory import rise\n"
        "with rise() as risen:\n"
        "    made = np.ones(50_000_000)\n"
        "print(risen.megabytes)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    megabytes = float(told.stdout)
    assert math.isnan(megabytes) or 200 < megabytes < 800  # 400 were made; the system counts pages roughly
