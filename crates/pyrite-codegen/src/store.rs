//! Machine code that was made before.
//!
//! The code of a kernel depends on the kernel, on the vector instructions and on this version of the emitter, and on
//! nothing else: neither on the kernel's name nor on which buffers its accesses go to, only on which of them go to the
//! same. [`CodeKey`] says just that, so kernels of repeated layers have one code. Who keeps code implements
//! [`CodeStore`]; [`Nothing`] keeps none.
//!
//! Code can be written down unless it holds addresses of this process, as code does that calls Rust functions.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use pyrite_loops::{BufferId, Kernel};
use sha2::{Digest, Sha256};

use crate::Code;

/// This version of the compiler: of the sources that decide what code a kernel gets.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("PYRITE_CODE_VERSION"));

/// What decides what the code of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeKey(pub [u8; 32]);

/// Keeps code.
///
/// # Safety
/// What is given back runs. [`Self::ready`] gives only code that [`Self::keep`] was given for the same key, and
/// [`Self::written`] only bytes that such code gave ([`Code::written`]), in this process or in another one of the same
/// [`VERSION`], and that nobody else can have changed.
#[expect(unsafe_code, reason = "a promise about code that runs")]
pub unsafe trait CodeStore {
    /// Code that is ready to run.
    fn ready(&self, key: &CodeKey) -> Option<Arc<dyn Code>>;

    /// Code that was written down.
    fn written(&self, key: &CodeKey) -> Option<&[u8]>;

    /// Is told of code that was made, or was read from what was written down.
    fn keep(&self, key: CodeKey, code: &Arc<dyn Code>);
}

/// Keeps nothing.
pub struct Nothing;

// SAFETY: it gives nothing.
#[expect(unsafe_code, reason = "a promise about code that runs")]
unsafe impl CodeStore for Nothing {
    fn ready(&self, _: &CodeKey) -> Option<Arc<dyn Code>> {
        None
    }

    fn written(&self, _: &CodeKey) -> Option<&[u8]> {
        None
    }

    fn keep(&self, _: CodeKey, _: &Arc<dyn Code>) {}
}

/// A text that is only summed up.
#[derive(Default)]
pub struct Summed(Sha256);

impl fmt::Write for Summed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl Summed {
    /// The sum.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

impl CodeKey {
    /// The key of a kernel for a generator, by its name.
    pub fn of(kernel: &Kernel, generator: &str) -> Self {
        let mut text = Summed::default();
        // Writing to a sum cannot fail.
        let _ = Self::write(&mut text, kernel, generator);
        Self(text.finish())
    }

    fn write(text: &mut Summed, kernel: &Kernel, generator: &str) -> fmt::Result {
        let Kernel { name: _, axes, rows, phases, lanes, accesses, results, numbers } = kernel;
        write!(text, "{VERSION} {generator} {rows:?} {phases:?} {lanes:?} {results:?}")?;
        for axis in axes {
            write!(text, " {}", axis.extent)?;
        }
        let mut buffers: Vec<BufferId> = Vec::new();
        for access in accesses {
            let known = buffers.iter().position(|buffer| *buffer == access.buffer);
            let buffer = known.unwrap_or_else(|| {
                buffers.push(access.buffer);
                buffers.len() - 1
            });
            write!(text, "; {buffer} {:?} {}", access.dtype, access.offset)?;
            for step in &access.steps {
                write!(text, " {step}")?;
            }
        }
        for number in numbers {
            write!(text, ", {number}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_loops::{Access, Inst, Phase, Type};
    use pyrite_tensor::DType;

    /// `out = in`, from and to buffers.
    fn copy(name: &str, from: u32, to: u32, extent: i64) -> Kernel {
        let mut kernel = Kernel { name: name.to_owned(), ..Kernel::default() };
        let axis = kernel.add_axis(extent.into());
        let mut access = |buffer| {
            let (buffer, dtype) = (BufferId(buffer), DType::F32);
            kernel.add_access(Access { buffer, dtype, offset: 0.into(), steps: vec![1.into()] })
        };
        let (from, to) = (access(from), access(to));
        let mut phase = Phase { axes: vec![axis], ..Phase::default() };
        let value = phase.code.push(Inst::Load(from), Type::F32);
        phase.code.push(Inst::Store { access: to, value }, Type::F32);
        kernel.phases.push(phase);
        kernel
    }

    #[test]
    fn names_and_numbers_of_buffers_do_not_matter_and_all_else_does() {
        let key = CodeKey::of(&copy("a", 0, 1, 8), "x86");
        assert_eq!(key, CodeKey::of(&copy("b", 7, 3, 8), "x86"));
        assert_ne!(key, CodeKey::of(&copy("a", 0, 0, 8), "x86"), "in place");
        assert_ne!(key, CodeKey::of(&copy("a", 0, 1, 9), "x86"), "another size");
        assert_ne!(key, CodeKey::of(&copy("a", 0, 1, 8), "avx2"), "other instructions");
    }
}
