"""Algorithm 1 as a loop: collection, the state that is also the checkpoint, metrics, progress.

`loop.py` is the place to start reading. May use every package above it: environments, memory, algorithms,
storage, analysis and plots; knows nothing of studies.
"""
