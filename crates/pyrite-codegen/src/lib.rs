//! The native compiler.
//!
//! ```text
//! functional graph ──lower──▶ Schedule ──passes──▶ Schedule ──emit──▶ Plan ──▶ Program
//! ```
//!
//! A [`schedule`] is the program as statements over buffers: loop nests, GEMMs ([`gemm`]), fused bmms ([`bmm`]),
//! convolutions ([`conv`]) and calls. [`passes`] lists what is done to it, in order. A kernel becomes [`Code`]: by the
//! x86-64 emitter ([`x86`]) where the processor has AVX2 or AVX-512, else, and as the oracle of its tests, by the tile
//! interpreter ([`tiles`]). [`Program`] runs the statements.

mod axes;
pub mod bmm;
mod bmm_run;
pub mod code;
mod code_map;
pub mod conv;
pub mod decisions;
mod emit;
mod fingerprint;
pub mod gemm;
mod loops;
pub mod passes;
pub mod program;
mod rows;
pub mod schedule;
pub mod store;
pub mod tiles;
#[cfg(target_arch = "x86_64")]
pub mod x86;

use std::sync::Arc;

use pyrite_ir::OpError;
use pyrite_loops::{Kernel, verify};

pub use code::{Call, Code, Fault};
pub use program::Program;
pub use store::{CodeKey, CodeStore};

/// Who makes code of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The tile interpreter.
    Tiles,
    /// The x86-64 emitter.
    #[cfg(target_arch = "x86_64")]
    X86(x86::Width),
}

impl Generator {
    /// The names that [`Generator::named`] knows.
    pub const NAMES: &[&str] = &["x86", "avx2", "tiles"];

    /// The best for this processor.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(width) = x86::Width::detect() {
            return Self::X86(width);
        }
        Self::Tiles
    }

    /// The generator of a name: `x86` is the best that there is, `avx2` narrower vectors, `tiles` the interpreter.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "x86" => Some(Self::best()),
            #[cfg(target_arch = "x86_64")]
            "avx2" => Some(Self::X86(x86::Width::Avx2)),
            "tiles" => Some(Self::Tiles),
            _ => None,
        }
    }

    /// Its name, which also says which instructions it uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiles => "tiles",
            #[cfg(target_arch = "x86_64")]
            Self::X86(x86::Width::Avx2) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::X86(x86::Width::Avx512) => "avx512",
        }
    }

    /// What `PYRITE_CODEGEN` names, else the best.
    pub fn chosen() -> Self {
        std::env::var("PYRITE_CODEGEN").ok().and_then(|name| Self::named(&name)).unwrap_or_else(Self::best)
    }
}

/// Makes code of a kernel, or takes it from a store. What the emitter cannot do is interpreted.
pub fn generate(kernel: &Kernel, generator: Generator, store: &dyn CodeStore) -> Result<Arc<dyn Code>, OpError> {
    if let Some(problem) = verify(kernel).first() {
        return Err(OpError::fault(format!("the kernel is wrong: {problem}\n{kernel}")));
    }
    match generator {
        Generator::Tiles => Ok(Arc::new(tiles::compile(kernel))),
        #[cfg(target_arch = "x86_64")]
        Generator::X86(width) => {
            let key = CodeKey::of(kernel, generator.name());
            if let Some(code) = store.ready(&key) {
                return Ok(code);
            }
            // SAFETY: stores promise that bytes are those of the key, which names kernel, width and version.
            #[expect(unsafe_code, reason = "code that was written down runs")]
            let restore = |bytes: &[u8]| unsafe { x86::restore(kernel, width, bytes) };
            let written = store.written(&key).and_then(restore);
            let code: Arc<dyn Code> = match written.map_or_else(|| x86::compile(kernel, width), Ok) {
                Ok(machine) => Arc::new(machine),
                Err(_) => Arc::new(tiles::compile(kernel)),
            };
            store.keep(key, &code);
            Ok(code)
        }
    }
}
