"""What capture has to get right: a corpus of small functions, hostile programs and whole models, against plain Python and TorchDynamo."""
