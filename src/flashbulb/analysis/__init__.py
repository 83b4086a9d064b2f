"""What is found out about runs: rollouts, evaluation, critic bias, memory maps, trained policies, export, statistics.

Works on run directories and trained policies, never on the training loop. May use the base modules, `envs`, `memory`,
`algorithms` and `storage`.
"""
