"""What is measured beside PyTorch: `python -m bench`."""
