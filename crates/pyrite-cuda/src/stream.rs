//! Streams: launches, copies, memory and events in their order.

#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::c_void;
use std::sync::Arc;

use crate::context::Context;
use crate::error::Result;
use crate::module::Function;
use crate::table::Handle;

/// How many blocks, and how many threads each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
}

/// A stream of a context.
#[derive(Clone)]
pub struct Stream(Arc<Queue>);

struct Queue {
    context: Context,
    handle: Handle,
    /// Whether it is ended with this.
    own: bool,
}

// SAFETY: the driver's functions on streams may be called by any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.own {
            let driver = self.context.driver();
            // SAFETY: the stream was made here and is ended once.
            let end = || driver.check("cuStreamDestroy_v2", unsafe { (driver.table.cuStreamDestroy_v2)(self.handle) });
            let _ = self.context.within(end);
        }
    }
}

impl Context {
    /// A new stream, which does not wait for the default one.
    pub fn stream(&self) -> Result<Stream> {
        /// It does not wait for the default stream.
        const NON_BLOCKING: u32 = 1;
        let driver = self.driver();
        self.within(|| {
            let mut handle = std::ptr::null_mut();
            // SAFETY: the result is written to the variable given.
            let code = unsafe { (driver.table.cuStreamCreate)(&raw mut handle, NON_BLOCKING) };
            driver.check("cuStreamCreate", code)?;
            Ok(Stream(Arc::new(Queue { context: self.clone(), handle, own: true })))
        })
    }

    /// Somebody else's stream, such as torch's current one; 0 is the default stream.
    ///
    /// # Safety
    /// It is a stream of this context and lives as long as what comes out.
    pub unsafe fn foreign_stream(&self, handle: usize) -> Stream {
        Stream(Arc::new(Queue { context: self.clone(), handle: handle as Handle, own: false }))
    }
}

impl Stream {
    /// Launches a kernel; its name is for errors.
    ///
    /// # Safety
    /// The parameters are those that the kernel takes, each of 64 bits, and the memory that it touches by them lives until it
    /// has run.
    pub unsafe fn launch(&self, function: &Function, name: &str, grid: Grid, params: &[u64]) -> Result<()> {
        let context = function.module.context();
        let driver = context.driver();
        let mut places: Vec<*mut c_void> =
            params.iter().map(|param| std::ptr::from_ref(param).cast_mut().cast()).collect();
        context.within(|| {
            // SAFETY: the driver reads as many parameters as the kernel has, before it returns.
            let code = unsafe {
                (driver.table.cuLaunchKernel)(
                    function.handle,
                    grid.blocks,
                    1,
                    1,
                    grid.threads,
                    1,
                    1,
                    0,
                    self.0.handle,
                    places.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            driver.check_for("cuLaunchKernel", name, code)
        })
    }

    /// Waits until everything is done that was put into the stream. What a kernel did wrong is an error here; `what` says
    /// which work was waited for.
    pub fn wait_for(&self, what: &str) -> Result<()> {
        let driver = self.0.context.driver();
        self.0.context.within(|| {
            // SAFETY: the stream lives.
            let code = unsafe { (driver.table.cuStreamSynchronize)(self.0.handle) };
            driver.check_for("cuStreamSynchronize", what, code)
        })
    }

    /// Memory of the device. It is given back in the order of the stream when it is dropped.
    pub fn allocate(&self, bytes: usize) -> Result<Memory> {
        let driver = self.0.context.driver();
        self.0.context.within(|| {
            let mut address = 0;
            // SAFETY: the result is written to the variable given.
            let code = unsafe { (driver.table.cuMemAllocAsync)(&raw mut address, bytes.max(1), self.0.handle) };
            driver.check_for("cuMemAllocAsync", &format!("{bytes} bytes"), code)?;
            Ok(Memory { stream: self.clone(), address, bytes })
        })
    }

    /// A new event with a time.
    pub fn event(&self) -> Result<Event> {
        let driver = self.0.context.driver();
        self.0.context.within(|| {
            let mut handle = std::ptr::null_mut();
            // SAFETY: results are written to the variable given; the event is recorded once it is there.
            unsafe {
                driver.check("cuEventCreate", (driver.table.cuEventCreate)(&raw mut handle, 0))?;
                let event = Event { stream: self.clone(), handle };
                driver.check("cuEventRecord", (driver.table.cuEventRecord)(handle, self.0.handle))?;
                Ok(event)
            }
        })
    }
}

/// Memory of a device.
pub struct Memory {
    stream: Stream,
    address: u64,
    bytes: usize,
}

impl Memory {
    /// Where it begins, for the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Copies bytes of the host to its beginning, and waits until they are there.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let (context, stream) = (&self.stream.0.context, &self.stream);
        let (driver, count) = (context.driver(), bytes.len().min(self.bytes));
        context.within(|| {
            // SAFETY: so many bytes are there on both sides, and are kept until they have been copied.
            let code = unsafe {
                (driver.table.cuMemcpyHtoDAsync_v2)(self.address, bytes.as_ptr().cast(), count, stream.0.handle)
            };
            driver.check("cuMemcpyHtoDAsync_v2", code)
        })?;
        stream.wait_for("a copy to the device")
    }

    /// Copies bytes from its beginning to the host, and waits until they are there. What ran before in the stream is waited
    /// for too.
    pub fn read(&self, bytes: &mut [u8]) -> Result<()> {
        let (context, stream) = (&self.stream.0.context, &self.stream);
        let (driver, count) = (context.driver(), bytes.len().min(self.bytes));
        context.within(|| {
            // SAFETY: as in `write`.
            let code = unsafe {
                (driver.table.cuMemcpyDtoHAsync_v2)(bytes.as_mut_ptr().cast(), self.address, count, stream.0.handle)
            };
            driver.check("cuMemcpyDtoHAsync_v2", code)
        })?;
        stream.wait_for("a copy from the device")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let driver = self.stream.0.context.driver();
        // SAFETY: the memory was allocated in this stream and is freed once, behind all that used it.
        let free = || {
            driver.check("cuMemFreeAsync", unsafe { (driver.table.cuMemFreeAsync)(self.address, self.stream.0.handle) })
        };
        let _ = self.stream.0.context.within(free);
    }
}

/// A point in a stream, with its time.
pub struct Event {
    stream: Stream,
    handle: Handle,
}

impl Event {
    /// How many seconds passed from another event to this one. Waits for this one.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        let driver = self.stream.0.context.driver();
        self.stream.0.context.within(|| {
            let mut milliseconds = 0.0f32;
            // SAFETY: both events were recorded; the result is written to the variable given.
            unsafe {
                driver.check("cuEventSynchronize", (driver.table.cuEventSynchronize)(self.handle))?;
                let code = (driver.table.cuEventElapsedTime)(&raw mut milliseconds, earlier.handle, self.handle);
                driver.check("cuEventElapsedTime", code)?;
            }
            Ok(f64::from(milliseconds) / 1e3)
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let driver = self.stream.0.context.driver();
        // SAFETY: the event was made here and is ended once.
        let end = || driver.check("cuEventDestroy_v2", unsafe { (driver.table.cuEventDestroy_v2)(self.handle) });
        let _ = self.stream.0.context.within(end);
    }
}
