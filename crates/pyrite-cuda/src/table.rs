//! The functions of the driver, and where they are found.
//!
//! Names are the driver's, with the version suffix under which the current form of each function is exported.

#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, CString, c_char, c_void};

use crate::error::{CudaError, Result};

/// Something of the driver's: a context, a module, a function, a stream, an event.
pub type Handle = *mut c_void;

/// Finds a function of the driver by its name; null where there is none.
pub type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

/// Declares the table: one field for each function, and the list of their names.
macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The functions. Each gives the driver's error code, zero where there is none.
        #[expect(non_snake_case, reason = "the driver's names")]
        #[derive(Clone, Copy)]
        pub(crate) struct Table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> i32,)*
        }

        /// The names of the functions.
        pub const FUNCTIONS: &[&CStr] = &[$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name has a zero in it"),
        }),*];

        impl Table {
            /// Finds all functions.
            ///
            /// # Safety
            /// What is found under a name has the type of the driver's function of that name.
            pub(crate) unsafe fn find(lookup: Lookup<'_>) -> Result<Self> {
                let mut names = FUNCTIONS.iter();
                let mut next = || {
                    let name = names.next().copied().unwrap_or_default();
                    let found = lookup(name);
                    if found.is_null() {
                        return Err(CudaError::NoFunction(name.to_string_lossy().into_owned()));
                    }
                    Ok(found)
                };
                Ok(Self {
                    // SAFETY: by the contract of this function.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> i32>(next()?)
                    },)*
                })
            }
        }
    };
}

functions! {
    cuInit(u32);
    cuDriverGetVersion(*mut i32);
    cuGetErrorName(i32, *mut *const c_char);
    cuGetErrorString(i32, *mut *const c_char);
    cuDeviceGetCount(*mut i32);
    cuDeviceGet(*mut i32, i32);
    cuDeviceGetName(*mut c_char, i32, i32);
    cuDeviceGetAttribute(*mut i32, i32, i32);
    cuDeviceTotalMem_v2(*mut usize, i32);
    cuDevicePrimaryCtxRetain(*mut Handle, i32);
    cuDevicePrimaryCtxRelease_v2(i32);
    cuCtxGetCurrent(*mut Handle);
    cuCtxPushCurrent_v2(Handle);
    cuCtxPopCurrent_v2(*mut Handle);
    cuModuleLoadDataEx(*mut Handle, *const c_void, u32, *mut i32, *mut *mut c_void);
    cuModuleUnload(Handle);
    cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    cuLinkCreate_v2(u32, *mut i32, *mut *mut c_void, *mut Handle);
    cuLinkAddData_v2(Handle, i32, *mut c_void, usize, *const c_char, u32, *mut i32, *mut *mut c_void);
    cuLinkComplete(Handle, *mut *mut c_void, *mut usize);
    cuLinkDestroy(Handle);
    cuLaunchKernel(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void);
    cuStreamCreate(*mut Handle, u32);
    cuStreamDestroy_v2(Handle);
    cuStreamSynchronize(Handle);
    cuMemAllocAsync(*mut u64, usize, Handle);
    cuMemFreeAsync(u64, Handle);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Handle);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, Handle);
    cuMemHostAlloc(*mut *mut c_void, usize, u32);
    cuMemFreeHost(*mut c_void);
    cuMemHostGetDevicePointer_v2(*mut u64, *mut c_void, u32);
    cuEventCreate(*mut Handle, u32);
    cuEventDestroy_v2(Handle);
    cuEventRecord(Handle, Handle);
    cuEventSynchronize(Handle);
    cuEventElapsedTime(*mut f32, Handle, Handle);
}

/// A library that is open. It is never closed: what it holds lives as long as the process.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Opens a library by its name or path.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let missing = |reason: String| CudaError::NoLibrary { name: name.to_owned(), reason };
        let text = CString::new(name).map_err(|_| missing("its name has a zero in it".to_owned()))?;
        // SAFETY: the name ends with a zero. The driver's library may be loaded at any time.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: the text is the loader's and is copied at once.
            let said = unsafe { libc::dlerror() };
            let reason = if said.is_null() {
                "no reason is given".to_owned()
            } else {
                // SAFETY: as above; it ends with a zero.
                unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
            };
            return Err(missing(reason));
        }
        Ok(Self(handle))
    }

    /// A function of the library; null where there is none.
    pub(crate) fn find(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is that of an open library, and the name ends with a zero.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}
