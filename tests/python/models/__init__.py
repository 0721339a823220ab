"""Whole models: the five that are measured, public architectures, PyTorch's dumps of them, and what compares them with eager."""
