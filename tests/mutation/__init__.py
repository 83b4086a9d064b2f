"""Whether the tests notice: small faults put into the code one at a time (`make mutants`)."""
