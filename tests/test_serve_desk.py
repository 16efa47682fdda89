"""The thread that explains: what waits together is explained together, and nobody gets another's answer or error."""

import asyncio
import json
import threading

import numpy as np
import pandas as pd
import pytest

from limis import LimisExplainer
from limis.errors import InputError

pytest.importorskip("fastapi")
from limis.serve.desk import BusyError, Desk
from limis.serve.downloads import json_parts
from limis.serve.tables import hold


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.random(150), "b": rng.choice(["x", "y"], 150)})


def ask(rows):
    if (rows["a"] > 1e6).any():
        raise ValueError("too large\nStack trace: secret")
    return rows["a"] * (1.0 + (rows["b"] == "y"))


@pytest.fixture(scope="module")
def explainer(frame):
    return LimisExplainer(ask, weighting="forest").fit(frame)


class Gate:
    """An explainer whose first call waits until it is told to go on, and which counts its calls."""

    def __init__(self, explainer):
        self.explainer, self.training_ = explainer, explainer.training_
        self.go, self.sizes = threading.Event(), []

    def explain(self, rows):
        self.sizes.append(len(rows))
        assert self.go.wait(20)
        return self.explainer.explain(rows)


def test_rows_that_wait_together_are_explained_together_and_get_the_answers_they_get_alone(explainer, frame):
    gate = Gate(explainer)
    desk = Desk(gate, most_waiting=100)
    desk.open()

    async def later(row):
        return await desk.data(frame.iloc[[row]].reset_index(drop=True))

    async def all_of_them():
        first = asyncio.create_task(later(0))
        while not gate.sizes:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(later(row)) for row in range(1, 6)]
        asides = [asyncio.create_task(desk.explain(frame.iloc[[row]], lambda found: found[0].label)) for row in (7, 9)]
        await asyncio.sleep(0.05)
        gate.go.set()
        return await asyncio.gather(first, *others), await asyncio.gather(*asides)

    told, labels = asyncio.run(all_of_them())
    desk.close()
    assert gate.sizes == [1, 7]
    assert labels == [7, 9]
    for row, (one,) in enumerate(told):
        alone = explainer.explain(frame.iloc[[row]].reset_index(drop=True))[0].to_dict()
        assert one == alone


def test_an_error_reaches_only_the_request_it_belongs_to(explainer, frame):
    gate = Gate(explainer)
    desk = Desk(gate, most_waiting=100)
    gate.go.set()
    bad = frame.iloc[[0]].assign(a=1e9)
    # Both wait before the desk opens, so that they are one batch.

    async def all_of_them():
        tasks = [asyncio.create_task(desk.data(rows)) for rows in (frame.iloc[[1]], bad, frame.iloc[[2]])]
        await asyncio.sleep(0.01)
        desk.open()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, error, last = asyncio.run(all_of_them())
    desk.close()
    assert "too large" in str(error)
    assert first[0]["row"] == 1
    assert last[0]["row"] == 2


def test_the_types_of_a_row_are_its_own_whatever_others_send(frame):
    def ask_by_type(rows):
        seen.append([str(kind) for kind in rows.dtypes])
        return rows["n"] * (2.0 if rows["n"].dtype.kind == "i" else 1.0) + rows["t"].fillna(0).astype(float)

    seen = []
    table = frame.assign(n=np.arange(len(frame)), t=frame["b"] == "x")[["n", "t"]]
    explainer = LimisExplainer(ask_by_type, weighting="forest").fit(table)
    mine, fraction, missing = table.iloc[[4]], table.iloc[[4]].assign(n=6.5), table.iloc[[4]].assign(t=np.nan)
    desk = Desk(explainer, most_waiting=100)

    async def all_of_them():
        tasks = [asyncio.create_task(desk.data(rows)) for rows in (mine, fraction, mine, missing)]
        await asyncio.sleep(0.01)
        seen.clear()
        desk.open()
        return await asyncio.gather(*tasks)

    told = asyncio.run(all_of_them())
    desk.close()
    assert [one["model_output"] for (one,) in told[:3]] == [9.0, 7.5, 9.0]
    assert seen == [["int64", "bool"], ["float64", "bool"], ["int64", "float64"]]


def test_other_work_has_its_turn_between_explanations_and_patient_work_last(explainer, frame):
    desk = Desk(explainer, most_waiting=100)
    done = []

    async def all_of_them():
        desk.do_later(lambda: done.append("patient"))
        tasks = [
            asyncio.create_task(desk.explain(frame.iloc[[0]], lambda _: done.append("explained"))),
            asyncio.create_task(desk.do(lambda: done.append("work"))),
        ]
        await asyncio.sleep(0.01)
        desk.open()
        await asyncio.gather(*tasks)
        await desk.do(lambda: None)

    asyncio.run(all_of_them())
    desk.close()
    assert done[:2] == ["explained", "work"]


def test_too_many_waiting_requests_are_refused_and_a_closed_desk_refuses_all(explainer, frame):
    desk = Desk(explainer, most_waiting=1)

    async def all_of_them():
        first = asyncio.create_task(desk.data(frame.iloc[[0]]))
        await asyncio.sleep(0.01)
        with pytest.raises(BusyError):
            await desk.data(frame.iloc[[1]])
        desk.open()
        await first
        desk.close()
        with pytest.raises(BusyError):
            await desk.do(lambda: 1)

    asyncio.run(all_of_them())


def test_a_desk_closes_when_one_who_waited_has_left(explainer, frame, monkeypatch):
    died = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    desk = Desk(explainer, most_waiting=10)

    async def all_of_them():
        gone, stays = (asyncio.create_task(desk.data(frame.iloc[[row]])) for row in (0, 1))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0.01)
        desk._closed = True
        desk.open()
        with pytest.raises(BusyError):
            await asyncio.wait_for(stays, 5)

    asyncio.run(all_of_them())
    desk.close()
    assert not died


def test_a_download_that_has_begun_is_not_refused(explainer, frame):
    desk = Desk(explainer, most_waiting=1)
    table = hold("key", "rows.csv", frame, explainer.training_)

    async def all_of_them():
        desk.open()
        parts = await json_parts(desk, table, list(range(len(table))))
        desk._most_waiting = 0
        with pytest.raises(BusyError):
            await json_parts(desk, table, [0])
        return "".join([part async for part in parts]), [part async for part in await json_parts(desk, table, [])]

    text, nothing = asyncio.run(all_of_them())
    desk.close()
    assert [one["row"] for one in json.loads(text)] == list(range(len(frame)))
    assert json.loads("".join(nothing)) == []


def test_what_cannot_be_told_is_an_error_and_not_the_end(explainer, frame, monkeypatch):
    desk = Desk(explainer, most_waiting=100)

    def fails(_):
        raise KeyError("no data")

    monkeypatch.setattr("limis.serve.desk.explanation_data", fails)

    async def all_of_them():
        tasks = [asyncio.create_task(desk.data(frame.iloc[[row]])) for row in (0, 1)]
        tasks.append(asyncio.create_task(desk.explain(frame.iloc[[2]], lambda found: found[0].label)))
        await asyncio.sleep(0.01)
        desk.open()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, label = asyncio.run(all_of_them())
    desk.close()
    assert isinstance(first, KeyError)
    assert isinstance(second, KeyError)
    assert label == 2


def test_errors_of_other_work_come_back_to_whoever_waits(explainer):
    desk = Desk(explainer, most_waiting=10)
    desk.open()

    def refuse():
        raise InputError("no")

    async def ask_for_it():
        await desk.do(refuse)

    with pytest.raises(InputError, match="no"):
        asyncio.run(ask_for_it())
    desk.close()
