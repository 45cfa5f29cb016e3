"""Traces of jobs on disk: the journal that driver and tasks write, and the check of traces.

`file_journal` writes, `segments` finds and reads, `conversation` says what driver and tasks have
said to each other, and `validation` puts it together. The check needs neither Spark nor the job.
"""
