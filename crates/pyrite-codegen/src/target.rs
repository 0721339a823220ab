//! Targets: what kernels become code for.
//!
//! A target makes [`Code`] of a kernel. All of them get mathematical functions from one library (`pyrite-math`), written in
//! the loop IR's own instructions, and print those; so pointwise kernels give the same bits everywhere. The tile
//! interpreter is the exception on purpose: it runs kernels as they are, computes functions in its own way, and is the
//! reference of the others.

use std::fmt;
use std::sync::Arc;

use pyrite_ir::OpError;
use pyrite_loops::{Kernel, verify};

use crate::{Code, CodeKey, CodeStore, tiles};

/// Why a target has no code for a kernel; another target takes it.
#[derive(Debug, thiserror::Error)]
#[error("{target} has no code for the kernel: {reason}")]
pub struct Unsupported {
    /// The target.
    pub target: &'static str,
    /// What it lacks.
    pub reason: String,
}

/// Makes code of kernels.
pub trait Target: fmt::Debug + Send + Sync {
    /// Its name, which also says which instructions it uses: code of one name runs wherever the target is available.
    fn name(&self) -> &'static str;

    /// Makes code of a well-formed kernel.
    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Code>, Unsupported>;

    /// The code of a kernel from what [`Code::written`] gave for it; nothing if it is not that, or never written.
    ///
    /// # Safety
    /// The bytes are what [`Code::written`] gave for this kernel and target in this version of the compiler.
    #[expect(unsafe_code, reason = "code that was written down runs")]
    unsafe fn restore(&self, kernel: &Kernel, bytes: &[u8]) -> Option<Arc<dyn Code>> {
        let _ = (kernel, bytes);
        None
    }
}

/// Who makes code of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The tile interpreter.
    Tiles,
    /// The x86-64 emitter.
    #[cfg(target_arch = "x86_64")]
    X86(crate::x86::Width),
    /// PTX for GPUs, interpreted.
    PtxInterpreter,
}

impl Generator {
    /// The names that [`Generator::named`] knows.
    pub const NAMES: &[&str] = &["x86", "avx2", "tiles", "ptx-interp"];

    /// The best for this processor.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(width) = crate::x86::Width::detect() {
            return Self::X86(width);
        }
        Self::Tiles
    }

    /// The generator of a name: `x86` is the best that there is, `avx2` narrower vectors, `tiles` the interpreter,
    /// `ptx-interp` PTX for GPUs and its interpreter.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "x86" => Some(Self::best()),
            #[cfg(target_arch = "x86_64")]
            "avx2" => Some(Self::X86(crate::x86::Width::Avx2)),
            "tiles" => Some(Self::Tiles),
            "ptx-interp" => Some(Self::PtxInterpreter),
            _ => None,
        }
    }

    /// The target.
    pub fn target(self) -> &'static dyn Target {
        match self {
            Self::Tiles => &tiles::TileInterpreter,
            Self::PtxInterpreter => &crate::ptx::PtxInterpreter,
            #[cfg(target_arch = "x86_64")]
            Self::X86(crate::x86::Width::Avx2) => &crate::x86::Width::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::X86(crate::x86::Width::Avx512) => &crate::x86::Width::Avx512,
        }
    }

    /// The name of the target.
    pub fn name(self) -> &'static str {
        self.target().name()
    }

    /// What `PYRITE_CODEGEN` names, else the best.
    pub fn chosen() -> Self {
        std::env::var("PYRITE_CODEGEN").ok().and_then(|name| Self::named(&name)).unwrap_or_else(Self::best)
    }
}

/// Makes code of a kernel, or takes it from a store. What the target cannot do is interpreted.
pub fn generate(kernel: &Kernel, generator: Generator, store: &dyn CodeStore) -> Result<Arc<dyn Code>, OpError> {
    if let Some(problem) = verify(kernel).first() {
        return Err(OpError::fault(format!("the kernel is wrong: {problem}\n{kernel}")));
    }
    let target = generator.target();
    if generator == Generator::Tiles {
        return Ok(Arc::new(tiles::compile(kernel)));
    }
    let key = CodeKey::of(kernel, target.name());
    if let Some(code) = store.ready(&key) {
        return Ok(code);
    }
    // SAFETY: stores promise that bytes are those of the key, which names kernel, target and version.
    #[expect(unsafe_code, reason = "code that was written down runs")]
    let restore = |bytes: &[u8]| unsafe { target.restore(kernel, bytes) };
    let written = store.written(&key).and_then(restore);
    let code = written.map_or_else(|| target.compile(kernel), Ok).unwrap_or_else(|_| Arc::new(tiles::compile(kernel)));
    store.keep(key, &code);
    Ok(code)
}
