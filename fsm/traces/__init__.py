"""Traces: what a system has done, as lines of JSON, and the check that its rows allow it.

`lines` has the format, `encoding` turns what a system journals into lines, `replaying` takes them
again on a fresh system. Files, processes and clocks are the affair of `runtime.tracing`.
"""
