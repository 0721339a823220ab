//! Kernels of known sizes on buffers of bytes.

#![expect(unsafe_code, reason = "compiled code works on raw memory")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use pyrite_codegen::code::Reach;
use pyrite_codegen::{Call, Code, Fault};
use pyrite_loops::{Access, AccessId, AxisId, BufferId, Inst, Kernel, Phase, Type, Val, verify};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

/// The arguments of a call.
pub struct Arguments {
    bases: Vec<*mut u8>,
    extents: Vec<i64>,
    begins: Vec<i64>,
    steps: Vec<i64>,
    numbers: Vec<i64>,
    reach: Vec<Reach>,
}

impl Arguments {
    /// Those of a kernel of known sizes on buffers that are as large as its accesses reach.
    pub fn new(kernel: &Kernel, buffers: &[*mut u8]) -> Self {
        let problems: Vec<String> = verify(kernel).iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{problems:?}\n{kernel}");
        let value = |n: &SymInt| n.as_int().or_else(|| n.hint()).unwrap();
        let base = |access: &Access| {
            let bytes = access.offset.as_int().unwrap() * access.dtype.size() as i64;
            buffers[access.buffer.0 as usize].wrapping_offset(bytes as isize)
        };
        Self {
            bases: kernel.accesses.iter().map(base).collect(),
            extents: kernel.axes.iter().map(|a| value(&a.extent)).collect(),
            begins: vec![0; kernel.axes.len()],
            steps: kernel.accesses.iter().flat_map(|a| a.steps.iter().map(value)).collect(),
            numbers: kernel.numbers.iter().map(value).collect(),
            reach: vec![Reach::Access; kernel.accesses.len()],
        }
    }

    /// The same, where accesses stay within buffers of known sizes.
    pub fn within(kernel: &Kernel, buffers: &mut [Vec<u8>]) -> Self {
        let pointers: Vec<*mut u8> = buffers.iter_mut().map(Vec::as_mut_ptr).collect();
        let reach = |access: &Access| {
            let buffer = &buffers[access.buffer.0 as usize];
            Reach::Buffer(buffer.as_ptr().addr()..buffer.as_ptr().addr() + buffer.len())
        };
        let reach = kernel.accesses.iter().map(reach).collect();
        Self { reach, ..Self::new(kernel, &pointers) }
    }

    /// Calls ready code.
    pub fn run(&self, code: &dyn Code) -> Result<(), Fault> {
        let Self { bases, extents, begins, steps, numbers, reach } = self;
        // SAFETY: the buffers are as large as the accesses reach.
        unsafe { code.run(&Call { bases, extents, begins, steps, numbers, reach }) }
    }
}

/// Runs a kernel of known sizes.
pub fn run(code: &dyn Code, kernel: &Kernel, buffers: &mut [Vec<u8>]) -> Result<(), Fault> {
    Arguments::within(kernel, buffers).run(code)
}

/// A buffer of numbers.
pub fn bytes<T: Copy>(values: &[T]) -> Vec<u8> {
    let len = size_of_val(values);
    // SAFETY: numbers are plain bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), len) }.to_vec()
}

/// The numbers of a buffer.
pub fn numbers<T: Copy>(bytes: &[u8]) -> Vec<T> {
    let read = |chunk: &[u8]| {
        // SAFETY: the chunk has the size of a number, and any bytes are a number.
        unsafe { chunk.as_ptr().cast::<T>().read_unaligned() }
    };
    bytes.chunks_exact(size_of::<T>()).map(read).collect()
}

/// Adds an access of constant steps.
pub fn access(kernel: &mut Kernel, buffer: u32, dtype: DType, offset: i64, steps: &[i64]) -> AccessId {
    kernel.add_access(Access {
        buffer: BufferId(buffer),
        dtype,
        offset: offset.into(),
        steps: steps.iter().map(|s| (*s).into()).collect(),
    })
}

/// Loads the element of an access.
pub fn load(kernel: &Kernel, phase: &mut Phase, access: AccessId) -> Val {
    let ty = Type::of(kernel.access(access).dtype).unwrap();
    phase.code.push(Inst::Load(access), ty)
}

/// Stores a value.
pub fn store(phase: &mut Phase, access: AccessId, value: Val) {
    let ty = phase.code.ty(value);
    phase.code.push(Inst::Store { access, value }, ty);
}

/// A phase over some axes.
pub fn phase(axes: &[AxisId]) -> Phase {
    Phase { axes: axes.to_vec(), ..Phase::default() }
}
