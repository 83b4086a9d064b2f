"""Finite CMDPs on which every statement of the paper is checked (docs/theory.md)."""
