from limis.progress import progress


def test_bar_is_on_standard_error_and_says_what_is_done(capsys):
    assert list(progress([1, 2, 3], "reading rows", enabled=True)) == [1, 2, 3]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "reading rows" in printed.err
    assert "3/3" in printed.err


def test_work_may_count_its_own_steps(capsys):
    with progress(10, "training", enabled=True) as bar:
        bar.update(4)
        bar.update(6)
    assert "10/10" in capsys.readouterr().err


def test_nothing_is_printed_when_not_enabled(capsys):
    assert list(progress(range(3), "reading rows", enabled=False)) == [0, 1, 2]
    with progress(2, "training", enabled=False) as bar:
        bar.update(2)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""
