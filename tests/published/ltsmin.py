"""Examples of LTSmin as processes. The largest is a gear box controller of the benchmark BEEM:
clutch, box, engine, driver, controller and timers.

A timer that is off is 255; a moment passes only while none has run out.
"""

from __future__ import annotations

from tests.published.processes import Edge, Processes

OFF = 255
CLUTCH = (
    Edge("closed", "opening", "", "t_clutch = 3", "open_clutch?"),
    Edge("opening", "open", "t_clutch <= 1", "t_clutch = 255", "clutch_open!"),
    Edge("opening", "stuck_closed", "t_clutch == 0", "t_clutch = 255"),
    Edge("open", "closing", "", "t_clutch = 3", "close_clutch?"),
    Edge("closing", "closed", "t_clutch <= 1", "t_clutch = 255", "clutch_closed!"),
    Edge("closing", "stuck_open", "t_clutch == 0", "t_clutch = 255"),
)
BOX = (
    Edge("neutral", "closing", "", "t_box = 6", "ask_set?"),
    Edge("closing", "stuck_idle", "t_box == 0", "t_box = 255"),
    Edge("closing", "idle", "t_box <= 4", "t_box = 255", "is_set!"),
    Edge("idle", "opening", "", "t_box = 4", "ask_neutral?"),
    Edge("opening", "stuck_neutral", "t_box == 0", "t_box = 255"),
    Edge("opening", "neutral", "t_box <= 2", "t_box = 255", "is_neutral!"),
)
ENGINE = (
    Edge("initial", "finding", "", "t_engine = 4", "ask_speed?"),
    Edge("finding", "clutch_open", "t_engine == 0"),
    Edge("finding", "speed", "t_engine <= 3", "t_engine = 10", "is_speed!"),
    Edge("clutch_open", "initial", "to_gear == 0"),
    Edge("clutch_open", "clutch_close", "to_gear != 0", "t_engine = 18"),
    Edge("speed", "stuck", "t_engine == 0", "t_engine = 255"),
    Edge("speed", "torque", "t_engine > 0", "t_engine = 255", "ask_torque?"),
    Edge("clutch_close", "stuck", "t_engine == 0", "t_engine = 255"),
    Edge("clutch_close", "torque", "t_engine < 17", "t_engine = 255", "ask_torque?"),
    Edge("torque", "falling", "", "t_engine = 8", "ask_no_torque?"),
    Edge("falling", "clutch_open", "t_engine == 0"),
    Edge("falling", "zero", "t_engine <= 5", "t_engine = 255", "is_no_torque!"),
    Edge("zero", "initial", "to_gear == 0"),
    Edge("zero", "finding", "to_gear != 0", "t_engine = 4", "ask_speed?"),
)
DRIVER = (
    Edge("gear", "up", "gear < 5", "", "ask_gear!1"),
    Edge("up", "gear", "", "gear = gear + 1", "is_gear?"),
    Edge("gear", "down", "gear > -1", "", "ask_gear!-1"),
    Edge("down", "gear", "", "gear = gear - 1", "is_gear?"),
)
CONTROL = (
    Edge("gear", "begin", "", "to_gear = to_gear + way", "ask_gear?way"),
    Edge("begin", "torque_off", "gear != 0", "t_control = 5", "ask_no_torque!"),
    Edge("begin", "speed_on", "gear == 0"),
    Edge("speed_on", "changed", "to_gear == 0"),
    Edge("speed_on", "speed_check", "to_gear != 0", "t_control = 3", "ask_speed!"),
    Edge("speed_check", "set_on", "t_control > 0", "", "is_speed?"),
    Edge("speed_check", "clutch_check", "t_control == 0", "t_control = 4", "open_clutch!"),
    Edge("set_on", "set_check", "", "t_control = 7", "ask_set!"),
    Edge("set_check", "torque_on", "", "t_control = 0", "is_set?"),
    Edge("set_check", "set_error", "t_control == 0", "t_control = 255"),
    Edge("torque_on", "changed", "", "", "ask_torque!"),
    Edge("changed", "gear", "", "t_control = 255", "is_gear!"),
    Edge("torque_off", "neutral_on", "t_control > 0", "", "is_no_torque?"),
    Edge("torque_off", "clutch_check_2", "t_control == 0", "t_control = 4", "open_clutch!"),
    Edge("neutral_on", "neutral_check", "", "t_control = 5", "ask_neutral!"),
    Edge("neutral_check", "speed_on", "", "", "is_neutral?"),
    Edge("neutral_check", "neutral_error", "t_control == 0", "t_control = 255"),
    Edge("clutch_check_2", "open_error", "t_control == 0", "t_control = 255"),
    Edge("clutch_check_2", "open_2", "", "t_control = 0", "clutch_open?"),
    Edge("open_2", "neutral_check_2", "", "t_control = 5", "ask_neutral!"),
    Edge("neutral_check_2", "neutral_error", "t_control == 0", "t_control = 255"),
    Edge("neutral_check_2", "set_on_2", "", "t_control = 0", "is_neutral?"),
    Edge("set_on_2", "set_check_2", "to_gear != 0", "t_control = 7", "ask_set!"),
    Edge("set_on_2", "closed_check_2", "to_gear == 0", "t_control = 4", "close_clutch!"),
    Edge("clutch_check", "open_error", "t_control == 0"),
    Edge("clutch_check", "open", "", "t_control = 0", "clutch_open?"),
    Edge("open", "set_check_2", "", "t_control = 7", "ask_set!"),
    Edge("set_check_2", "set_error", "t_control == 0", "t_control = 255"),
    Edge("set_check_2", "close", "", "t_control = 0", "is_set?"),
    Edge("close", "closed_check", "", "t_control = 4", "close_clutch!"),
    Edge("closed_check", "torque_on", "", "t_control = 0", "clutch_closed?"),
    Edge("closed_check", "close_error", "t_control == 0", "t_control = 255"),
    Edge("closed_check_2", "close_error", "t_control == 0", "t_control = 255"),
    Edge("closed_check_2", "changed", "", "t_control = 0", "clutch_closed?"),
)
TIMERS = ("t_box", "t_clutch", "t_engine", "t_control")
CLOCK = Edge(
    "there",
    "there",
    " and ".join(f"{timer} != 0" for timer in TIMERS),
    ";".join(f"{timer} = {timer} if {timer} == {OFF} else {timer} - 1" for timer in TIMERS),
)


def gear() -> Processes:
    """All of them, for gears from -1 to 5."""
    timers = dict.fromkeys(TIMERS, (0, OFF, OFF))
    return Processes(
        {**timers, "to_gear": (-1, 5, 0), "gear": (-1, 5, 0), "way": (-1, 1, 0)},
        {
            "clutch": CLUTCH,
            "box": BOX,
            "engine": ENGINE,
            "driver": DRIVER,
            "control": CONTROL,
            "clock": (CLOCK,),
        },
        dead="some faults do not happen",
    )


def alternating_bit() -> Processes:
    """The alternating bit protocol of two values, of mCRL2. `m` is twice a value plus its bit; what
    a process holds no longer is 0.
    """
    return Processes(
        {
            "d": (0, 1, 0),
            "b": (0, 1, 1),
            "m": (0, 3, 0),
            "rd": (0, 1, 0),
            "rb": (0, 1, 1),
            "a": (0, 1, 0),
        },
        {
            "sender": (
                Edge("idle", "sending", "", "d = 0"),
                Edge("idle", "sending", "", "d = 1"),
                Edge("sending", "waiting", "", "", "message!d * 2 + b"),
                Edge("waiting", "idle", "a == b", "b = 1 - b; d = 0; a = 0", "answer?"),
                Edge("waiting", "sending", "a != b", "a = 0", "answer?"),
                Edge("waiting", "sending", "", "", "garbled_answer?"),
            ),
            "line": (
                Edge("empty", "full", "", "", "message?m"),
                Edge("full", "whole"),
                Edge("full", "broken", "", "m = 0"),
                Edge("whole", "empty", "", "", "arrival!"),
                Edge("broken", "empty", "", "", "garbled!"),
            ),
            "receiver": (
                Edge("waiting", "giving", "m % 2 == rb", "rd = m // 2; m = 0", "arrival?"),
                Edge("waiting", "repeating", "m % 2 != rb", "m = 0", "arrival?"),
                Edge("waiting", "repeating", "", "", "garbled?"),
                Edge("giving", "answering", "", "rd = 0"),
                Edge("answering", "waiting", "", "rb = 1 - rb", "reply!rb"),
                Edge("repeating", "waiting", "", "", "reply!1 - rb"),
            ),
            "back": (
                Edge("empty", "full", "", "", "reply?a"),
                Edge("full", "whole"),
                Edge("full", "broken", "", "a = 0"),
                Edge("whole", "empty", "", "", "answer!"),
                Edge("broken", "empty", "", "", "garbled_answer!"),
            ),
        },
    )


def mutex() -> Processes:
    """A critical section of ProB, which counts the step to the first state, and may lose one."""
    return Processes(
        {"inside": (0, 1, 0), "ready": (0, 2, 0), "finished": (0, 2, 0)},
        {
            "all": (
                Edge("root", "there", "", "ready = 2"),
                Edge(
                    "there", "there", "inside == 0 and ready > 0", "inside = 1; ready = ready - 1"
                ),
                Edge("there", "there", "inside == 1", "inside = 0; finished = finished + 1"),
                Edge("there", "there", "", "inside = 0"),
                Edge("there", "there", "inside == 1"),
                Edge(
                    "there", "there", "finished > 0", "ready = ready + 1; finished = finished - 1"
                ),
            )
        },
    )
