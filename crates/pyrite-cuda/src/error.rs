//! What can go wrong at the driver, and what helps.

/// A result of the driver.
pub type Result<T> = std::result::Result<T, CudaError>;

/// Why something cannot be done on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// There is no driver on this machine.
    #[error("the CUDA driver's library {name} cannot be opened: {reason}")]
    NoLibrary {
        /// The library.
        name: String,
        /// What the loader says.
        reason: String,
    },
    /// The driver is too old, or is no driver.
    #[error("the CUDA driver has no function {0}")]
    NoFunction(String),
    /// The driver is too old.
    #[error("the CUDA driver is of CUDA {}.{}, CUDA {}.{} is needed", found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10)]
    OldDriver {
        /// Its version, as the driver says it.
        found: i32,
        /// The oldest that serves.
        needed: i32,
    },
    /// There is no device of that number.
    #[error("there is no device cuda:{wanted}; the driver sees {count}")]
    NoDevice {
        /// The number.
        wanted: usize,
        /// How many there are.
        count: usize,
    },
    /// The device is too old for the code that is made.
    #[error("{name} has compute capability {}.{}, 8.0 is needed", capability.0, capability.1)]
    OldDevice {
        /// The device.
        name: String,
        /// What it can do.
        capability: (i32, i32),
    },
    /// The driver's assembler refuses code.
    #[error("the driver does not load the code of {what}: {name} ({code}){}", said(log))]
    Refused {
        /// What the code is of.
        what: String,
        /// The name of the error.
        name: String,
        /// Its number.
        code: i32,
        /// What the assembler says.
        log: String,
    },
    /// A function failed.
    #[error("{function} failed{}: {name} ({code}), {text}", about(what))]
    Failed {
        /// The driver's function.
        function: &'static str,
        /// What it was called for, such as the name of a kernel; may be empty.
        what: String,
        /// The name of the error.
        name: String,
        /// Its number.
        code: i32,
        /// What the driver says of it.
        text: String,
    },
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}

fn about(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!(" for {what}") }
}

/// The driver's number for memory that is not available.
const OUT_OF_MEMORY: i32 = 2;
/// The driver's number for a machine without a usable device.
const NO_DEVICE: i32 = 100;
/// PTX of a version that the driver does not know.
const UNSUPPORTED_PTX: i32 = 222;

impl CudaError {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoLibrary { .. } => {
                "install NVIDIA's driver, or run on the CPU; in a container, start it with access to the \
                                       GPU (`--gpus all`)"
                    .to_owned()
            }
            Self::NoFunction(_) | Self::OldDriver { .. } => "update NVIDIA's driver to version 525 or newer".to_owned(),
            Self::NoDevice { count: 0, .. } | Self::Failed { code: NO_DEVICE, .. } => {
                "check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or run on the CPU".to_owned()
            }
            Self::NoDevice { count, .. } => format!("name a device from cuda:0 to cuda:{}", count - 1),
            Self::OldDevice { .. } => "use a GPU of Ampere's generation or newer, or run on the CPU".to_owned(),
            Self::Refused { code: UNSUPPORTED_PTX, .. } => "update NVIDIA's driver".to_owned(),
            Self::Refused { .. } => {
                "this is a bug of Pyrite's or of the driver's assembler: report it with the log, and run on the CPU"
                    .to_owned()
            }
            Self::Failed { code: OUT_OF_MEMORY, .. } => {
                "use smaller inputs, or free memory of the device (`nvidia-smi` lists who has it)".to_owned()
            }
            Self::Failed { .. } => {
                "after a fault the process has to be started again; `compute-sanitizer` names the access".to_owned()
            }
        }
    }
}
