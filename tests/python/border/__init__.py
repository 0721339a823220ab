"""Whether compiled functions do at every entry point what eager does: random samples, compositions of functions, unusual numbers."""
