//! A fake driver: functions with the driver's types over memory of the host.
//!
//! Every function can be told to fail. Modules are PTX: an "image" is the text itself, functions are its entries, and a
//! launch is handed to [`Executor`], by which a test interprets it, or is only noted down.

#![expect(unsafe_code, reason = "it stands in for a C library")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};

use parking_lot::{Mutex, MutexGuard};
use pyrite_cuda::{Driver, Handle};

/// What a launch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The name of the entry.
    pub entry: String,
    /// Blocks and threads.
    pub grid: (u32, u32),
    /// The parameters.
    pub params: Vec<u64>,
}

/// Runs a launch: the text of the module, the launch, and the memory there is, as addresses and bytes.
pub type Executor = fn(&str, &Launched, &[(u64, u64)]) -> Result<(), i32>;

/// What the driver is like.
pub struct State {
    /// The function that fails, and with which code.
    pub fails: Option<(&'static str, i32)>,
    /// The version that it says it has.
    pub version: i32,
    /// How many devices it shows.
    pub devices: i32,
    /// What the devices can do.
    pub capability: (i32, i32),
    /// What was launched.
    pub launched: Vec<Launched>,
    /// How many times PTX was assembled.
    pub assembled: usize,
    executor: Option<Executor>,
    /// A launch that failed is told at the next wait.
    pending: i32,
    memory: BTreeMap<u64, Vec<u64>>,
    modules: Vec<Option<String>>,
    functions: Vec<(usize, String)>,
    stack: Vec<usize>,
    /// How many things are there: contexts, modules, streams, events.
    pub alive: i64,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    const fn new() -> Self {
        Self {
            fails: None,
            version: 13_000,
            devices: 2,
            capability: (9, 0),
            launched: Vec::new(),
            assembled: 0,
            executor: None,
            pending: 0,
            memory: BTreeMap::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            stack: Vec::new(),
            alive: 0,
        }
    }

    /// How many pieces of memory are there.
    pub fn pieces(&self) -> usize {
        self.memory.len()
    }
}

static STATE: Mutex<State> = Mutex::new(State::new());
static ALONE: Mutex<()> = Mutex::new(());

/// The fake, for one test alone, as it is at first.
pub fn fresh() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock();
    *STATE.lock() = State::new();
    alone
}

/// What it is like.
pub fn state() -> MutexGuard<'static, State> {
    STATE.lock()
}

/// Lets launches run.
pub fn execute_by(executor: Executor) {
    STATE.lock().executor = Some(executor);
}

/// The driver with these functions; one of them may be missing.
pub fn driver(missing: Option<&str>) -> pyrite_cuda::Result<&'static Driver> {
    let lookup = |name: &CStr| {
        let name = name.to_str().unwrap_or_default();
        if Some(name) == missing { std::ptr::null_mut() } else { function(name) }
    };
    // SAFETY: the functions below have the driver's types.
    unsafe { Driver::with(&lookup) }
}

/// Declares functions, each of which fails where it is told to, and finds them by name.
macro_rules! fakes {
    ($(fn $name:ident($($argument:ident: $ty:ty),*) $body:block)*) => {
        $(
            // SAFETY: callers keep to the driver's contract: addresses are of what the function reads or writes.
            #[expect(non_snake_case, reason = "the driver's names")]
            unsafe extern "C" fn $name($($argument: $ty),*) -> i32 {
                if let Some((name, code)) = STATE.lock().fails && name == stringify!($name) {
                    return code;
                }
                $body
            }
        )*

        fn function(name: &str) -> *mut c_void {
            match name {
                $(stringify!($name) => $name as unsafe extern "C" fn($($ty),*) -> i32 as *mut c_void,)*
                _ => std::ptr::null_mut(),
            }
        }
    };
}

/// Writes a result.
fn give<T>(to: *mut T, value: T) -> i32 {
    // SAFETY: the caller of the driver gives a place for each result.
    unsafe { to.write(value) };
    0
}

fn made(to: *mut Handle, number: usize) -> i32 {
    STATE.lock().alive += 1;
    give(to, number as Handle)
}

fn ended() -> i32 {
    STATE.lock().alive -= 1;
    0
}

/// The names of the entries of a text.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(".entry ").skip(1).filter_map(|rest| rest.split('(').next()).map(str::trim)
}

fn text_at<'a>(data: *const c_void) -> &'a str {
    // SAFETY: what is given is a text that ends with a zero.
    unsafe { CStr::from_ptr(data.cast()) }.to_str().unwrap_or_default()
}

/// Writes a log by the options of the assembler: the third is where errors are written.
fn log(count: u32, values: *mut *mut c_void, text: &CStr) {
    if count == 4 {
        let bytes = text.to_bytes_with_nul();
        // SAFETY: the options are four, and there is room for thousands of bytes.
        unsafe { (*values.add(2)).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

static LINKED: Mutex<Option<Vec<u8>>> = Mutex::new(None);
/// Where the linker's log goes.
static LINK_LOG: Mutex<usize> = Mutex::new(0);

fakes! {
    fn cuInit(_flags: u32) { 0 }
    fn cuDriverGetVersion(to: *mut i32) { give(to, STATE.lock().version) }
    fn cuGetErrorName(code: i32, to: *mut *const c_char) {
        give(to, if code == 2 { c"CUDA_ERROR_OUT_OF_MEMORY" } else { c"CUDA_ERROR_PLANTED" }.as_ptr())
    }
    fn cuGetErrorString(_code: i32, to: *mut *const c_char) { give(to, c"it was told to fail".as_ptr()) }
    fn cuDeviceGetCount(to: *mut i32) { give(to, STATE.lock().devices) }
    fn cuDeviceGet(to: *mut i32, ordinal: i32) { give(to, ordinal) }
    fn cuDeviceGetName(to: *mut c_char, _room: i32, _device: i32) {
        for (index, byte) in c"Fake GPU".to_bytes_with_nul().iter().enumerate() {
            give(to.wrapping_add(index), *byte as c_char);
        }
        0
    }
    fn cuDeviceGetAttribute(to: *mut i32, attribute: i32, _device: i32) {
        let (major, minor) = STATE.lock().capability;
        give(to, match attribute { 75 => major, 76 => minor, _ => 4 })
    }
    fn cuDeviceTotalMem_v2(to: *mut usize, _device: i32) { give(to, 1 << 30) }
    fn cuDevicePrimaryCtxRetain(to: *mut Handle, device: i32) { made(to, 0x1000 + device as usize) }
    fn cuDevicePrimaryCtxRelease_v2(_device: i32) { ended() }
    fn cuCtxGetCurrent(to: *mut Handle) { give(to, STATE.lock().stack.last().copied().unwrap_or(0) as Handle) }
    fn cuCtxPushCurrent_v2(context: Handle) {
        STATE.lock().stack.push(context as usize);
        0
    }
    fn cuCtxPopCurrent_v2(to: *mut Handle) { give(to, STATE.lock().stack.pop().unwrap_or(0) as Handle) }
    fn cuModuleLoadDataEx(to: *mut Handle, image: *const c_void, count: u32, _options: *mut i32, values: *mut *mut c_void) {
        let text = text_at(image);
        if !text.contains(".version") {
            log(count, values, c"fake: no version");
            return 218;
        }
        let number = {
            let mut state = STATE.lock();
            state.modules.push(Some(text.to_owned()));
            state.modules.len()
        };
        made(to, number)
    }
    fn cuModuleUnload(module: Handle) {
        STATE.lock().modules[module as usize - 1] = None;
        ended()
    }
    fn cuModuleGetFunction(to: *mut Handle, module: Handle, name: *const c_char) {
        let mut state = STATE.lock();
        let name = text_at(name.cast());
        let number = module as usize - 1;
        if !state.modules[number].as_deref().is_some_and(|text| entries(text).any(|entry| entry == name)) {
            return 500;
        }
        state.functions.push((number, name.to_owned()));
        give(to, state.functions.len() as Handle)
    }
    fn cuLinkCreate_v2(count: u32, _options: *mut i32, values: *mut *mut c_void, to: *mut Handle) {
        // SAFETY: the options are four: where the third one's value is, errors are written.
        *LINK_LOG.lock() = if count == 4 { unsafe { *values.add(2) as usize } } else { 0 };
        made(to, 0x2000)
    }
    fn cuLinkAddData_v2(
        _linker: Handle,
        _kind: i32,
        data: *mut c_void,
        _bytes: usize,
        _name: *const c_char,
        _count: u32,
        _options: *mut i32,
        _values: *mut *mut c_void
    ) {
        let text = text_at(data);
        if !text.contains(".version") {
            let room = *LINK_LOG.lock() as *mut c_void;
            log(4, [std::ptr::null_mut(), std::ptr::null_mut(), room, std::ptr::null_mut()].as_mut_ptr(), c"ptxas fatal: no version");
            return 218;
        }
        STATE.lock().assembled += 1;
        *LINKED.lock() = Some([text.as_bytes(), &[0]].concat());
        0
    }
    fn cuLinkComplete(_linker: Handle, to: *mut *mut c_void, bytes: *mut usize) {
        let mut linked = LINKED.lock();
        let Some(image) = linked.as_mut() else { return 1 };
        give(bytes, image.len());
        give(to, image.as_mut_ptr().cast())
    }
    fn cuLinkDestroy(_linker: Handle) { ended() }
    fn cuLaunchKernel(
        function: Handle,
        blocks: u32,
        _y: u32,
        _z: u32,
        threads: u32,
        _ty: u32,
        _tz: u32,
        _shared: u32,
        _stream: Handle,
        params: *mut *mut c_void,
        _extra: *mut *mut c_void
    ) {
        let mut state = STATE.lock();
        let (module, entry) = state.functions[function as usize - 1].clone();
        let Some(text) = state.modules[module].clone() else { return 400 };
        let body = text.split(&format!(".entry {entry}(")).nth(1).unwrap_or_default();
        let count = body.split(')').next().unwrap_or_default().matches(".param").count();
        // SAFETY: there is an address for each parameter of the entry, and each has 64 bits.
        let params = (0..count).map(|index| unsafe { *(*params.add(index)).cast::<u64>() }).collect();
        let launched = Launched { entry, grid: (blocks, threads), params };
        let memory: Vec<(u64, u64)> = state.memory.iter().map(|(start, words)| (*start, words.len() as u64 * 8)).collect();
        let executor = state.executor;
        state.launched.push(launched.clone());
        drop(state);
        if let Some(Err(code)) = executor.map(|run| run(&text, &launched, &memory)) {
            STATE.lock().pending = code;
        }
        0
    }
    fn cuStreamCreate(to: *mut Handle, _flags: u32) { made(to, 0x3000) }
    fn cuStreamDestroy_v2(_stream: Handle) { ended() }
    fn cuStreamSynchronize(_stream: Handle) { STATE.lock().pending }
    fn cuMemAllocAsync(to: *mut u64, bytes: usize, _stream: Handle) {
        // What nobody has written is not zero.
        let words = vec![0x7ff7_7777_7fb7_7777; bytes.div_ceil(8)];
        let address = words.as_ptr() as u64;
        STATE.lock().memory.insert(address, words);
        give(to, address)
    }
    fn cuMemFreeAsync(address: u64, _stream: Handle) { i32::from(STATE.lock().memory.remove(&address).is_none()) }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, _stream: Handle) {
        // SAFETY: the device's memory is the host's, and the caller has so many bytes.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from.cast(), bytes) };
        0
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, _stream: Handle) {
        // SAFETY: as above.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(from as *const u8, bytes) };
        0
    }
    fn cuMemHostAlloc(to: *mut *mut c_void, bytes: usize, _flags: u32) {
        let words = vec![0u64; bytes.div_ceil(8)];
        let address = words.as_ptr() as u64;
        STATE.lock().memory.insert(address, words);
        give(to, address as *mut c_void)
    }
    fn cuMemFreeHost(address: *mut c_void) { i32::from(STATE.lock().memory.remove(&(address as u64)).is_none()) }
    fn cuMemHostGetDevicePointer_v2(to: *mut u64, host: *mut c_void, _flags: u32) { give(to, host as u64) }
    fn cuEventCreate(to: *mut Handle, _flags: u32) { made(to, 0x4000) }
    fn cuEventDestroy_v2(_event: Handle) { ended() }
    fn cuEventRecord(_event: Handle, _stream: Handle) { 0 }
    fn cuEventSynchronize(_event: Handle) { 0 }
    fn cuEventElapsedTime(to: *mut f32, _earlier: Handle, _later: Handle) { give(to, 2.0) }
}
