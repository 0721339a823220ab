//! The primary context of a device, and memory of the host that the device sees.

#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::driver::{Device, Driver};
use crate::error::Result;
use crate::table::Handle;

/// A device's primary context.
#[derive(Clone)]
pub struct Context(Arc<Primary>);

struct Primary {
    device: Device,
    handle: Handle,
}

// SAFETY: contexts belong to the process; any thread may make one current.
unsafe impl Send for Primary {}
// SAFETY: as above.
unsafe impl Sync for Primary {}

impl Context {
    pub(crate) fn primary(device: Device) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the result is written to the variable given.
        let code = unsafe { (device.driver.table.cuDevicePrimaryCtxRetain)(&raw mut handle, device.handle) };
        device.driver.check_for("cuDevicePrimaryCtxRetain", &device.name, code)?;
        Ok(Self(Arc::new(Primary { device, handle })))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.0.device.driver
    }

    /// Does something with this context as the current one of the thread. What was current before is so afterwards.
    pub(crate) fn within<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let (driver, mut current) = (self.driver(), std::ptr::null_mut());
        // SAFETY: the result is written to the variable given.
        driver.check("cuCtxGetCurrent", unsafe { (driver.table.cuCtxGetCurrent)(&raw mut current) })?;
        if current == self.0.handle {
            return act();
        }
        // SAFETY: the context is retained; it is popped below whatever happens between, which cannot panic.
        driver.check("cuCtxPushCurrent_v2", unsafe { (driver.table.cuCtxPushCurrent_v2)(self.0.handle) })?;
        let done = act();
        let mut popped = std::ptr::null_mut();
        // SAFETY: as above.
        driver.check("cuCtxPopCurrent_v2", unsafe { (driver.table.cuCtxPopCurrent_v2)(&raw mut popped) })?;
        done
    }

    /// Memory of the host, all zero, that the device reads and writes where it is.
    pub fn pinned(&self, bytes: usize) -> Result<Pinned> {
        /// The device has an address for it.
        const DEVICE_MAP: u32 = 2;
        let driver = self.driver();
        self.within(|| {
            let mut host = std::ptr::null_mut::<c_void>();
            // SAFETY: results are written to the variables given, and the memory has as many bytes as it was asked for.
            let mut pinned = unsafe {
                driver.check("cuMemHostAlloc", (driver.table.cuMemHostAlloc)(&raw mut host, bytes, DEVICE_MAP))?;
                host.write_bytes(0, bytes);
                let host = NonNull::new(host.cast::<u32>()).unwrap_or(NonNull::dangling());
                Pinned { context: self.clone(), host, device: 0, words: bytes / 4 }
            };
            // SAFETY: as above.
            let found = unsafe { (driver.table.cuMemHostGetDevicePointer_v2)(&raw mut pinned.device, host, 0) };
            driver.check("cuMemHostGetDevicePointer_v2", found)?;
            Ok(pinned)
        })
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        // SAFETY: it was retained once and is released once.
        unsafe { (self.device.driver.table.cuDevicePrimaryCtxRelease_v2)(self.device.handle) };
    }
}

/// Words of 32 bits that host and device share.
pub struct Pinned {
    context: Context,
    host: NonNull<u32>,
    device: u64,
    words: usize,
}

// SAFETY: words are read and written whole, by volatile accesses.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// The address of a word for the device.
    pub fn address(&self, word: usize) -> u64 {
        self.device + 4 * word.min(self.words.saturating_sub(1)) as u64
    }

    /// A word as it is now, which is zero afterwards.
    pub fn take(&self, word: usize) -> u32 {
        if word >= self.words {
            return 0;
        }
        let place = self.host.as_ptr().wrapping_add(word);
        // SAFETY: the word lies in memory that is held.
        unsafe {
            let found = place.read_volatile();
            if found != 0 {
                place.write_volatile(0);
            }
            found
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let (driver, host) = (self.context.driver(), self.host.as_ptr());
        // SAFETY: the memory was allocated by the driver and is freed once.
        let _ =
            self.context.within(|| driver.check("cuMemFreeHost", unsafe { (driver.table.cuMemFreeHost)(host.cast()) }));
    }
}
