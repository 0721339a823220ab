//! The scheduled program: what a compiled graph does, statement by statement.
//!
//! ```text
//! graph ──lower──▶ Schedule ──passes──▶ Schedule ──emit──▶ Schedule<Loops> ──▶ run
//! ```
//!
//! A [`Schedule`] is [`Buffer`]s and [`Statement`]s. A statement is a loop nest, a GEMM, a fused bmm, a convolution or an
//! extern call, over operands that name a buffer and a layout in it; nothing in it depends on a device. `K` is what stands
//! for a loop nest: the [`Kernel`] itself while passes rewrite the program, and compiled code once it is emitted. Emission
//! replaces kernels by their code and changes nothing else.
//!
//! What always holds is listed in [`verify`]; [`memory`] checks the finished memory plan on its own. [`text`] prints a
//! schedule and [`parse`] reads it back.

pub mod memory;
pub mod parse;
pub mod text;
pub(crate) mod trace;
pub mod verify;

use std::sync::Arc;

use pyrite_ir::lower::Place;
use pyrite_ir::{Meta, Node, OpRef, Value};
use pyrite_loops::{BufferId, Kernel};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use crate::bmm::FusedBmm;
use crate::conv::Conv;
use crate::gemm::Gemm;

/// Where the contents of a buffer come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The input of that number.
    Input(usize),
    /// The constant of that name.
    Constant(Arc<str>),
    /// A statement of the program.
    Computed,
    /// A kernel, for each of its rows.
    Scratch,
}

/// A buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Where its contents come from.
    pub origin: Origin,
    /// The type of its elements.
    pub dtype: DType,
    /// How many elements it has; meaningless for inputs and constants, which bring their memory.
    pub elements: SymInt,
}

/// A call of an operator's reference kernel.
#[derive(Clone, Debug)]
pub struct ExternCall {
    /// The operator.
    pub op: OpRef,
    /// Its arguments.
    pub args: Vec<Value<Place>>,
    /// Where its results lie afterwards.
    pub results: Value<Place>,
    /// The node it comes from.
    pub node: Node,
}

/// What a statement does.
pub enum Op<K = Kernel> {
    /// A loop nest.
    Loop(K),
    /// A matrix multiplication with its epilogue.
    Gemm(Box<Gemm<K>>),
    /// Batched matmuls and the kernels fused with them.
    Bmm(Box<FusedBmm<K>>),
    /// A convolution by transformed tiles.
    Conv(Box<Conv>),
    /// A call.
    Call(Box<ExternCall>),
}

/// A result that is written over a buffer that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// The buffer that dies.
    pub dead: BufferId,
    /// The result that takes its memory.
    pub result: BufferId,
}

/// One statement, and what becomes of memory around it.
pub struct Statement<K = Kernel> {
    /// What it does.
    pub op: Op<K>,
    /// Results that are written over what the statement is the last to read.
    pub reuses: Vec<Reuse>,
    /// Buffers whose lifetime ends behind it.
    pub frees: Vec<BufferId>,
}

/// A scheduled program; see the module's text.
pub struct Schedule<K = Kernel> {
    /// All buffers, by [`BufferId`].
    pub buffers: Vec<Buffer>,
    /// The statements in the order they run.
    pub statements: Vec<Statement<K>>,
    /// What each input must look like.
    pub inputs: Vec<Value<Place>>,
    /// Views that may lie outside of the input whose storage they are in, or that have another element type.
    pub reaches: Vec<Place>,
    /// What is returned.
    pub output: Value<Place>,
    /// The operators that stayed calls, though their records have a lowering.
    pub fallbacks: Vec<String>,
}

/// What stands for a loop nest.
pub trait AsKernel {
    /// The loop nest.
    fn kernel(&self) -> &Kernel;
}

impl AsKernel for Kernel {
    fn kernel(&self) -> &Kernel {
        self
    }
}

impl<K> From<Op<K>> for Statement<K> {
    /// A statement whose memory is not planned yet.
    fn from(op: Op<K>) -> Self {
        Self { op, reuses: Vec::new(), frees: Vec::new() }
    }
}

impl<K: AsKernel> Op<K> {
    /// The buffers it fills, each once.
    pub fn writes(&self) -> Vec<BufferId> {
        let mut found = Vec::new();
        let mut add = |buffer| {
            if !found.contains(&buffer) {
                found.push(buffer);
            }
        };
        match self {
            Self::Loop(kernel) => kernel.kernel().written().into_iter().for_each(add),
            Self::Gemm(gemm) => {
                add(gemm.out());
                gemm.epilogue.iter().flat_map(|epilogue| epilogue.kernel.kernel().written()).for_each(add);
            }
            Self::Bmm(bmm) => bmm.filled().for_each(add),
            Self::Conv(conv) => places(&conv.call.results).into_iter().for_each(add),
            Self::Call(call) => places(&call.results).into_iter().for_each(add),
        }
        found
    }

    /// The buffers it reads, each once; also those that a part of it has filled before.
    pub fn reads(&self) -> Vec<BufferId> {
        let mut found = Vec::new();
        let mut add = |buffer| {
            if !found.contains(&buffer) {
                found.push(buffer);
            }
        };
        match self {
            Self::Loop(kernel) => kernel.kernel().read().into_iter().for_each(add),
            Self::Gemm(gemm) => {
                gemm.call.reads().into_iter().for_each(&mut add);
                gemm.epilogue.iter().flat_map(|epilogue| epilogue.kernel.kernel().read()).for_each(add);
            }
            Self::Bmm(bmm) => bmm.reads().into_iter().for_each(add),
            Self::Conv(conv) => conv.call.reads().into_iter().for_each(add),
            Self::Call(call) => call.reads().into_iter().for_each(add),
        }
        found
    }

    /// Its kernels in the order they run.
    pub fn kernels(&self) -> Vec<&K> {
        match self {
            Self::Loop(kernel) => vec![kernel],
            Self::Gemm(gemm) => gemm.epilogue.iter().map(|epilogue| &epilogue.kernel).collect(),
            Self::Bmm(bmm) => bmm.kernels().collect(),
            Self::Conv(_) | Self::Call(_) => Vec::new(),
        }
    }
}

impl<K> Op<K> {
    /// The same statement with something else in the place of each kernel, in the order they run.
    pub fn try_map<L, E>(self, f: &mut dyn FnMut(K) -> Result<L, E>) -> Result<Op<L>, E> {
        Ok(match self {
            Self::Loop(kernel) => Op::Loop(f(kernel)?),
            Self::Gemm(gemm) => Op::Gemm(Box::new(gemm.try_map(f)?)),
            Self::Bmm(bmm) => Op::Bmm(Box::new(bmm.try_map(f)?)),
            Self::Conv(conv) => Op::Conv(conv),
            Self::Call(call) => Op::Call(call),
        })
    }
}

impl ExternCall {
    /// The buffers it reads.
    pub fn reads(&self) -> Vec<BufferId> {
        self.args.iter().flat_map(places).collect()
    }
}

impl<K> Schedule<K> {
    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// The same program with something else in the place of each kernel, in the order they run.
    pub fn try_map<L, E>(self, f: &mut dyn FnMut(K) -> Result<L, E>) -> Result<Schedule<L>, E> {
        let mut statements = Vec::with_capacity(self.statements.len());
        for Statement { op, reuses, frees } in self.statements {
            statements.push(Statement { op: op.try_map(f)?, reuses, frees });
        }
        let Self { buffers, inputs, reaches, output, fallbacks, .. } = self;
        Ok(Schedule { buffers, statements, inputs, reaches, output, fallbacks })
    }
}

impl<K: AsKernel> Schedule<K> {
    /// The kernels in the order they run.
    pub fn kernels(&self) -> impl Iterator<Item = &K> {
        self.statements.iter().flat_map(|statement| statement.op.kernels())
    }
}

/// The name of a buffer, for people.
pub fn buffer_name(buffers: &[Buffer], buffer: BufferId) -> String {
    match &buffers[buffer.0 as usize].origin {
        Origin::Input(number) => format!("input{number}"),
        Origin::Constant(name) => name.to_string(),
        Origin::Computed => format!("buf{}", buffer.0),
        Origin::Scratch => format!("row{}", buffer.0),
    }
}

/// The buffers of a value.
pub fn places(value: &Value<Place>) -> Vec<BufferId> {
    let mut found = Vec::new();
    value.each(&mut |place| found.push(place.buffer));
    found
}

/// How many elements a storage needs for a tensor.
pub fn extent(meta: &Meta) -> SymInt {
    let mut last = meta.offset.clone();
    for (size, stride) in meta.shape.iter().zip(&meta.stride) {
        if size.as_int() == Some(0) {
            return SymInt::Int(0);
        }
        last = last + (size.clone() + SymInt::Int(-1)) * stride.clone();
    }
    last + SymInt::Int(1)
}
