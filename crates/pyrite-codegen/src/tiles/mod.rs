//! The tile interpreter.
