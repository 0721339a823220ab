//! The x86-64 emitter.
