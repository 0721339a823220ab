//! The text form: the Python that PyTorch's FX prints.
