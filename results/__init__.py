"""What was really run, and the scripts that make tables and figures of it."""
