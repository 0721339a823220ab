//! The driver and its devices.

#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{CudaError, Result};
use crate::table::{Library, Lookup, Table};

/// The library of the driver.
const LIBRARY: &str = "libcuda.so.1";
/// The oldest driver that serves: CUDA 12.0, whose PTX and stream-ordered memory are what is used here.
const OLDEST: i32 = 12_000;
/// The attributes of a device, by the driver's numbers.
const MULTIPROCESSORS: i32 = 16;
const CAPABILITY: [i32; 2] = [75, 76];

/// The functions of the driver, ready to be called.
pub struct Driver {
    pub(crate) table: Table,
    version: i32,
    /// The primary contexts that were asked for, by device; they are kept.
    contexts: Mutex<Vec<(i32, Context)>>,
}

/// A GPU.
#[derive(Clone)]
pub struct Device {
    pub(crate) driver: &'static Driver,
    pub(crate) handle: i32,
    /// Its number among those the driver shows.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Major and minor number of what it can do: 9.0 is Hopper.
    pub capability: (i32, i32),
    /// How many multiprocessors it has.
    pub multiprocessors: i32,
    /// Its memory in bytes.
    pub memory: usize,
}

static DRIVER: OnceLock<Result<&'static Driver>> = OnceLock::new();

impl Driver {
    /// The driver of this machine; looked for once.
    pub fn get() -> Result<&'static Self> {
        let load = || {
            let library = Library::open(LIBRARY)?;
            // SAFETY: the driver's library exports functions of these types under these names.
            unsafe { Self::with(&|name| library.find(name)) }
        };
        DRIVER.get_or_init(load).clone()
    }

    /// A driver whose functions are found elsewhere. It lives as long as the process.
    ///
    /// # Safety
    /// What is found under a name has the type of the driver's function of that name and does what it promises.
    pub unsafe fn with(lookup: Lookup<'_>) -> Result<&'static Self> {
        // SAFETY: by the contract of this function.
        let table = unsafe { Table::find(lookup) }?;
        let mut driver = Self { table, version: 0, contexts: Mutex::default() };
        let mut version = 0;
        // SAFETY: results are written to the variables given.
        let (code, told) = unsafe { ((table.cuInit)(0), (table.cuDriverGetVersion)(&raw mut version)) };
        driver.check("cuInit", code)?;
        driver.check("cuDriverGetVersion", told)?;
        if version < OLDEST {
            return Err(CudaError::OldDriver { found: version, needed: OLDEST });
        }
        driver.version = version;
        Ok(Box::leak(Box::new(driver)))
    }

    /// The newest CUDA that the driver serves: 13000 is 13.0.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// How many devices there are.
    pub fn count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the result is written to the variable given.
        self.check("cuDeviceGetCount", unsafe { (self.table.cuDeviceGetCount)(&raw mut count) })?;
        Ok(count.max(0) as usize)
    }

    /// The device of a number.
    pub fn device(&'static self, ordinal: usize) -> Result<Device> {
        let count = self.count()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { wanted: ordinal, count });
        }
        let mut handle = 0;
        let mut name = [0 as c_char; 256];
        let mut memory = 0;
        // SAFETY: results are written to the variables given; the name is at most as long as said, with its zero.
        unsafe {
            self.check("cuDeviceGet", (self.table.cuDeviceGet)(&raw mut handle, ordinal as i32))?;
            let room = name.len() as i32;
            self.check("cuDeviceGetName", (self.table.cuDeviceGetName)(name.as_mut_ptr(), room, handle))?;
            self.check("cuDeviceTotalMem_v2", (self.table.cuDeviceTotalMem_v2)(&raw mut memory, handle))?;
        }
        let attribute = |number: i32| {
            let mut value = 0;
            // SAFETY: the result is written to the variable given.
            let code = unsafe { (self.table.cuDeviceGetAttribute)(&raw mut value, number, handle) };
            self.check("cuDeviceGetAttribute", code).map(|()| value)
        };
        // SAFETY: the driver has ended the name with a zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let capability = (attribute(CAPABILITY[0])?, attribute(CAPABILITY[1])?);
        let multiprocessors = attribute(MULTIPROCESSORS)?;
        Ok(Device { driver: self, handle, ordinal, name, capability, multiprocessors, memory })
    }

    /// An error of a function, with the driver's words for it.
    pub(crate) fn check(&self, function: &'static str, code: i32) -> Result<()> {
        self.check_for(function, "", code)
    }

    /// The same, with what the function was called for.
    pub(crate) fn check_for(&self, function: &'static str, what: &str, code: i32) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let what = what.to_owned();
        let (name, text) = self.words(code);
        Err(CudaError::Failed { function, what, name, code, text })
    }

    /// The name of an error and a sentence about it.
    pub(crate) fn words(&self, code: i32) -> (String, String) {
        let ask = |function: unsafe extern "C" fn(i32, *mut *const c_char) -> i32| {
            let mut text = std::ptr::null();
            // SAFETY: the result is written to the variable given; texts of the driver are never freed.
            let told = unsafe { function(code, &raw mut text) };
            if told != 0 || text.is_null() {
                return format!("an error that the driver has no words for, {code}");
            }
            // SAFETY: as above; it ends with a zero.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        (ask(self.table.cuGetErrorName), ask(self.table.cuGetErrorString))
    }
}

impl Device {
    /// Its primary context, which is kept until the process ends.
    pub fn context(&self) -> Result<Context> {
        if self.capability < (8, 0) {
            return Err(CudaError::OldDevice { name: self.name.clone(), capability: self.capability });
        }
        let mut known = self.driver.contexts.lock();
        if let Some((_, context)) = known.iter().find(|(handle, _)| *handle == self.handle) {
            return Ok(context.clone());
        }
        let context = Context::primary(self.clone())?;
        known.push((self.handle, context.clone()));
        Ok(context)
    }

    /// The newest CUDA that its driver serves.
    pub fn driver_version(&self) -> i32 {
        self.driver.version
    }

    /// Its architecture, as the assembler names it.
    pub fn architecture(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }
}
