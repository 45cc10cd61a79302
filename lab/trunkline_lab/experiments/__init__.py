"""The published tables and figures, each an experiment: the paper's column, stock TCP's and ours from one run.

A module here is an experiment: ABOUT says what it repeats, `run` does it. EXPERIMENTS names them all.
"""
