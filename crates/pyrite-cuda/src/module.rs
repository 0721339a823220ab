//! Code on a device: modules of PTX or machine code, and their functions.

#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::table::Handle;

/// The driver's numbers of options of its assembler.
const INFO_LOG: i32 = 3;
const INFO_LOG_BYTES: i32 = 4;
const ERROR_LOG: i32 = 5;
const ERROR_LOG_BYTES: i32 = 6;
/// The driver's number for PTX as an input of its linker.
const INPUT_PTX: i32 = 1;
/// How much of what the assembler says is kept.
const LOG: usize = 8192;

/// Machine code for one architecture, as the driver's assembler made it of PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Vec<u8>);

impl Image {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Machine code that was made before.
    ///
    /// # Safety
    /// The bytes are those of an image that was made for the same architecture: they run.
    pub unsafe fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// What an assembler may say, and where it finds room for it.
struct Log {
    errors: Vec<u8>,
    infos: Vec<u8>,
}

impl Log {
    fn new() -> Self {
        Self { errors: vec![0; LOG], infos: vec![0; LOG] }
    }

    /// The options with their values, in the form of the driver.
    fn options(&mut self) -> ([i32; 4], [*mut c_void; 4]) {
        let room = LOG as *mut c_void;
        let values = [self.infos.as_mut_ptr().cast(), room, self.errors.as_mut_ptr().cast(), room];
        ([INFO_LOG, INFO_LOG_BYTES, ERROR_LOG, ERROR_LOG_BYTES], values)
    }

    fn text(&self) -> String {
        let until_zero = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        let (errors, infos) = (until_zero(&self.errors), until_zero(&self.infos));
        if errors.is_empty() { infos } else { errors }
    }
}

/// Code that is loaded on a device.
#[derive(Clone)]
pub struct Module(Arc<Loaded>);

struct Loaded {
    context: Context,
    handle: Handle,
}

// SAFETY: the driver's functions on modules may be called by any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        let driver = self.context.driver();
        // SAFETY: the module was loaded once and is unloaded once; functions hold it.
        let unload = || driver.check("cuModuleUnload", unsafe { (driver.table.cuModuleUnload)(self.handle) });
        let _ = self.context.within(unload);
    }
}

impl Context {
    /// Assembles PTX for this device; `what` names it in errors.
    pub fn assemble(&self, ptx: &str, what: &str) -> Result<Image> {
        let driver = self.driver();
        let text = zero_terminated(ptx, what)?;
        let name = CString::new("program").unwrap_or_default();
        let mut log = Log::new();
        self.within(|| {
            let (mut options, mut values) = log.options();
            let mut linker = std::ptr::null_mut();
            let (mut cubin, mut bytes) = (std::ptr::null_mut(), 0);
            // SAFETY: the linker is made, used and ended here; it copies what it is given, writes its logs within their room,
            // and its result is copied before it is ended.
            unsafe {
                let made = (driver.table.cuLinkCreate_v2)(
                    options.len() as u32,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                    &raw mut linker,
                );
                driver.check("cuLinkCreate_v2", made)?;
                let mut code = (driver.table.cuLinkAddData_v2)(
                    linker,
                    INPUT_PTX,
                    text.as_ptr().cast_mut().cast(),
                    text.as_bytes_with_nul().len(),
                    name.as_ptr(),
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                );
                if code == 0 {
                    code = (driver.table.cuLinkComplete)(linker, &raw mut cubin, &raw mut bytes);
                }
                let image = (code == 0 && !cubin.is_null())
                    .then(|| Image(std::slice::from_raw_parts(cubin.cast::<u8>(), bytes).to_vec()));
                (driver.table.cuLinkDestroy)(linker);
                image.ok_or_else(|| {
                    let (name, _) = driver.words(code);
                    CudaError::Refused { what: what.to_owned(), name, code, log: log.text() }
                })
            }
        })
    }

    /// Loads machine code; `what` names it in errors.
    pub fn load(&self, image: &Image, what: &str) -> Result<Module> {
        let driver = self.driver();
        let mut log = Log::new();
        self.within(|| {
            let (mut options, mut values) = log.options();
            let mut handle = std::ptr::null_mut();
            // SAFETY: the image is machine code as the driver made it; results are written to the variables given.
            let code = unsafe {
                (driver.table.cuModuleLoadDataEx)(
                    &raw mut handle,
                    image.0.as_ptr().cast(),
                    options.len() as u32,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            };
            if code != 0 {
                let (name, _) = driver.words(code);
                return Err(CudaError::Refused { what: what.to_owned(), name, code, log: log.text() });
            }
            Ok(Module(Arc::new(Loaded { context: self.clone(), handle })))
        })
    }
}

fn zero_terminated(text: &str, what: &str) -> Result<CString> {
    CString::new(text).map_err(|_| CudaError::Refused {
        what: what.to_owned(),
        name: "a zero in the text".to_owned(),
        code: 0,
        log: String::new(),
    })
}

/// A kernel on a device.
#[derive(Clone)]
pub struct Function {
    pub(crate) module: Module,
    pub(crate) handle: Handle,
}

// SAFETY: the driver's functions on functions may be called by any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    /// The kernel of a name.
    pub fn function(&self, name: &str) -> Result<Function> {
        let (context, mut handle) = (&self.0.context, std::ptr::null_mut());
        let driver = context.driver();
        let text = zero_terminated(name, name)?;
        context.within(|| {
            let text: *const c_char = text.as_ptr();
            // SAFETY: the name ends with a zero; the result is written to the variable given.
            let code = unsafe { (driver.table.cuModuleGetFunction)(&raw mut handle, self.0.handle, text) };
            driver.check_for("cuModuleGetFunction", name, code)
        })?;
        Ok(Function { module: self.clone(), handle })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }
}
