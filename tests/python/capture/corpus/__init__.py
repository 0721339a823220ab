"""The corpus: one file for each part of the language, one function for each thing that it can do."""
