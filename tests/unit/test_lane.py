"""Work beside the caller's own: in order, never behind the caller's back."""

from __future__ import annotations

import threading

import pytest

from mainstem import observe
from mainstem.lane import Lane


def test_pieces_run_in_their_order_in_another_thread() -> None:
    seen: list[tuple[int, bool]] = []
    with Lane() as lane:
        for number in range(5):
            lane.do(lambda number=number: seen.append((number, threading.current_thread() is threading.main_thread())))
    assert seen == [(number, False) for number in range(5)]


def test_the_caller_goes_on_while_a_piece_runs() -> None:
    begun, allowed = threading.Event(), threading.Event()

    def piece() -> None:
        begun.set()
        assert allowed.wait(10)

    with Lane() as lane:
        lane.do(piece)
        assert begun.wait(10)
        allowed.set()


def test_what_a_piece_raises_is_raised_by_the_next_and_that_one_does_not_run() -> None:
    seen: list[str] = []
    with pytest.raises(ZeroDivisionError), Lane() as lane:
        lane.do(lambda: seen.append(str(1 // 0)))
        lane.do(lambda: seen.append("next"))
    assert seen == []


def test_what_the_last_piece_raises_is_raised_at_the_end() -> None:
    with pytest.raises(ZeroDivisionError), Lane() as lane:
        lane.do(lambda: [1 // 0].clear())


def test_a_block_that_fails_still_waits_for_the_running_piece() -> None:
    done: list[bool] = []
    allowed = threading.Event()

    def piece() -> None:
        assert allowed.wait(10)
        done.append(True)

    with pytest.raises(KeyError), Lane() as lane:
        lane.do(piece)
        allowed.set()
        raise KeyError("the block's own")
    assert done == [True]


def test_a_span_of_a_piece_belongs_to_the_callers() -> None:
    with observe.span("outer") as outer, Lane() as lane:
        found: list[object] = []

        def piece() -> None:
            from opentelemetry import trace

            found.append(trace.get_current_span())

        lane.do(piece)
    assert found == [outer]
