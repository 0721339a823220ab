//! GEMM statements: `mm` and `addmm` with an epilogue.
//!
//! A GEMM whose matrices are not small goes straight to `pyrite-matmul`. Two things make it more than a call:
//!
//! - A right operand that is an input or a constant, a weight, and that lies in our own memory is kept packed when a second
//!   call brings the same bytes, which its [`Fingerprint`] tells: a weight that was written to is packed anew. GEMMs of
//!   many rows do not gain from that, so their weights are not kept, and all programs together keep a bounded number of
//!   bytes. A weight in external memory is read as it lies in every call: to prove that it is the same would take as long
//!   as packing it does (ADR 41). Neither are weights kept for GEMMs of a few rows, which read them as fast as they lie.
//! - A kernel that reads the result row by row runs on rows as they are completed, while they are in the cache, and on the
//!   thread that has them: its [`Epilogue`].

use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use half::{bf16, f16};
use pyrite_ir::lower::Place;
use pyrite_ir::{ExternKind, Lower, OpError, Value};
use pyrite_loops::{BufferId, Kernel};
use pyrite_matmul::{Base, Lane, Matrix, Onto, Packed, Pair, Request, Right, Shape, Source, Threads, multiply_into};
use pyrite_tensor::{DType, Element, Layout, Storage, Tensor};

use crate::code::Fault;
use crate::fingerprint::Fingerprint;
use crate::loops::{LoopShape, Loops, Ready};
use crate::rows::Rows;
use crate::schedule::{Buffer, ExternCall, Origin};

/// Weights are kept packed for GEMMs of at most this many rows.
const KEEP_ROWS: usize = 1024;
/// Weights in external memory that change in as many calls in a row, as those in training do, are not looked at any more.
const CHANGES: u32 = 4;
/// Bytes of packed weights that all programs together keep.
const KEEP_BYTES: usize = 512 << 20;
/// GEMMs of at most this many multiplications are calls: those are more exact.
pub const SMALL: usize = 1 << 12;
/// From this many rows on a kernel may be an epilogue: below, threads had better share columns.
pub const EPILOGUE_ROWS: i64 = 64;

/// A GEMM; see the module's text.
pub struct Gemm<K = Kernel> {
    /// The call that it stands for.
    pub call: ExternCall,
    /// A kernel that runs on rows as they are completed.
    pub epilogue: Option<Epilogue<K>>,
    terms: Terms,
    /// Whether the right operand is an input or a constant.
    weighted: bool,
}

/// A kernel that reads the result of a GEMM, and how it goes through its rows.
pub struct Epilogue<K = Kernel> {
    /// The kernel.
    pub kernel: K,
    /// How it goes through the rows.
    pub rows: Rows,
}

/// `out = bias + scale·(lhs @ rhs)`.
struct Terms {
    lhs: Place,
    rhs: Place,
    bias: Option<Bias>,
    out: Place,
    scale: f64,
}

/// What a GEMM is added to.
enum Bias {
    /// The same dense row for all rows.
    Row(Place),
    /// A tensor that broadcasts to the result, times a factor: the result begins as a copy of it.
    Whole(Place, f64),
}

impl Bias {
    fn place(&self) -> &Place {
        match self {
            Self::Row(place) | Self::Whole(place, _) => place,
        }
    }
}

/// The tensors of a call.
pub struct GemmOperands {
    /// The left operand.
    pub lhs: Tensor,
    /// The right operand.
    pub rhs: Tensor,
    /// What is added.
    pub bias: Option<Tensor>,
    /// The result.
    pub out: Tensor,
}

impl Gemm {
    /// A call as a GEMM, if it is one that is worth it.
    pub fn of(call: ExternCall, buffers: &[Buffer]) -> Result<Self, Box<ExternCall>> {
        let Some(terms) = Terms::of(&call) else { return Err(Box::new(call)) };
        let origin = &buffers[terms.rhs.buffer.0 as usize].origin;
        let weighted = matches!(origin, Origin::Input(_) | Origin::Constant(_));
        Ok(Self { call, epilogue: None, terms, weighted })
    }

    /// How a kernel that comes next goes through the rows of the result, if it can be the epilogue.
    pub fn rows_of(&self, kernel: &Kernel) -> Option<Rows> {
        let meta = &self.terms.out.meta;
        let (rows, row) = (meta.shape[0].as_int()?, meta.stride[0].as_int()?);
        if rows < EPILOGUE_ROWS || !matches!(meta.dtype, DType::F32 | DType::F64) {
            return None;
        }
        let writes = kernel.written().contains(&self.out());
        if writes { None } else { Rows::of(kernel, &LoopShape::of(kernel), self.out(), rows, row) }
    }
}

impl<K> Gemm<K> {
    /// The buffer of the result.
    pub fn out(&self) -> BufferId {
        self.terms.out.buffer
    }

    /// The same GEMM with something else in the place of its kernel.
    pub fn try_map<L, E>(self, f: &mut dyn FnMut(K) -> Result<L, E>) -> Result<Gemm<L>, E> {
        let Self { call, epilogue, terms, weighted } = self;
        let epilogue = match epilogue {
            Some(Epilogue { kernel, rows }) => Some(Epilogue { kernel: f(kernel)?, rows }),
            None => None,
        };
        Ok(Gemm { call, epilogue, terms, weighted })
    }
}

impl Gemm<Loops> {
    /// The tensors of a call, each from its place.
    pub fn operands(&self, mut tensor: impl FnMut(&Place) -> Result<Tensor, OpError>) -> Result<GemmOperands, OpError> {
        let Terms { lhs, rhs, bias, out, .. } = &self.terms;
        Ok(GemmOperands {
            lhs: tensor(lhs)?,
            rhs: tensor(rhs)?,
            bias: bias.as_ref().map(|bias| tensor(bias.place())).transpose()?,
            out: tensor(out)?,
        })
    }

    /// Computes the GEMM and its epilogue. The result has memory of its own.
    pub fn run(&self, operands: &GemmOperands, weight: &Weight, epilogue: Option<&Ready<'_>>) -> Result<(), OpError> {
        match operands.out.dtype() {
            DType::F32 => self.typed::<f32>(operands, weight, epilogue),
            DType::F64 => self.typed::<f64>(operands, weight, epilogue),
            DType::BF16 => self.half::<bf16>(operands, weight),
            _ => self.half::<f16>(operands, weight),
        }
    }

    fn typed<T: Element + Lane + Source<T>>(
        &self,
        operands: &GemmOperands,
        weight: &Weight,
        ready: Option<&Ready<'_>>,
    ) -> Result<(), OpError> {
        let start = match (&self.terms.bias, &operands.bias) {
            (Some(Bias::Whole(_, factor)), Some(bias)) => {
                operands.out.write_from(&bias.expanded(operands.out.shape()));
                Onto::Scaled(T::rounded(*factor))
            }
            _ => Onto::Nothing,
        };
        let out = operands.out.storage().as_mut_ptr().cast::<T>();
        let out = out.wrapping_add(operands.out.layout().offset as usize);
        let row = operands.bias.as_ref().filter(|_| start == Onto::Nothing);
        let row = row.map(|bias| (bias.storage().read::<T>(), bias.layout().offset as usize));
        let onto = row.as_ref().map_or(Base::Out(start), |(row, first)| Base::Row(&row[*first..]));
        let fault: Mutex<Option<Fault>> = Mutex::new(None);
        let run_epilogue = |rows: Range<usize>| {
            let (Some(ready), Some(epilogue)) = (ready, &self.epilogue) else { return };
            epilogue.rows.bounds(rows.start as i64..rows.end as i64, |bounds, _| {
                if let Err(found) = ready.run_within(bounds, &[]) {
                    *fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                }
            });
        };
        let finish = ready.map(|_| &run_epilogue as &(dyn Fn(Range<usize>) + Sync));
        let (left, right) = (operands.lhs.storage().read::<T>(), operands.rhs.storage().read::<T>());
        let factors = (matrix(&operands.lhs, &left), matrix(&operands.rhs, &right));
        self.multiply((operands, weight), factors, out, shape_of(&operands.out), onto, finish);
        match (fault.into_inner().unwrap_or_else(PoisonError::into_inner), &self.epilogue) {
            (Some(fault), Some(epilogue)) => Err(epilogue.kernel.error(fault)),
            _ => Ok(()),
        }
    }

    /// In half precision: multiplied and added in single precision, and rounded once.
    fn half<S: Half>(&self, operands: &GemmOperands, weight: &Weight) -> Result<(), OpError> {
        let sums = Storage::recycled(operands.out.numel() * size_of::<f32>());
        let bias = operands.bias.as_ref().map(Tensor::to_f32s);
        let onto = bias.as_ref().map_or(Base::Out(Onto::Nothing), |bias| Base::Row(bias));
        let shape = Shape::rows_first(operands.out.shape()[0] as usize, operands.out.shape()[1] as usize);
        let (left, right) = (operands.lhs.storage().read::<S>(), operands.rhs.storage().read::<S>());
        let (lhs, rhs) = (matrix(&operands.lhs, &left), matrix(&operands.rhs, &right));
        let to = sums.as_mut_ptr().cast();
        match S::pairs(lhs).zip(S::pairs(rhs.transposed())) {
            Some((lhs, rhs)) => self.multiply((operands, weight), (lhs, rhs.transposed()), to, shape, onto, None),
            None => self.multiply((operands, weight), (lhs, rhs), to, shape, onto, None),
        }
        operands.out.write_f32s(&sums.read::<f32>());
        Ok(())
    }

    fn multiply<S: Source<T>, T: Lane>(
        &self,
        (operands, weight): (&GemmOperands, &Weight),
        (lhs, rhs): (Matrix<'_, S>, Matrix<'_, S>),
        out: *mut T,
        shape: Shape,
        onto: Base<'_, T>,
        finish: Option<&(dyn Fn(Range<usize>) + Sync)>,
    ) {
        let keeps = self.weighted && shape.rows <= KEEP_ROWS && Packed::<T>::pays(shape.rows, rhs);
        let panels = if keeps { weight.panels::<S, T>(&operands.rhs, rhs) } else { None };
        let rhs = panels.as_ref().map_or(Right::Plain(rhs), |panels| Right::Packed(&panels.made));
        let scale = T::rounded(self.terms.scale);
        let request = Request { lhs, rhs, scale, onto, threads: Threads::All, finish };
        // SAFETY: the result's memory holds what its layout reaches and nobody else has it: it belongs to this step of
        // the program. The epilogue reads only rows that are complete, as `rows_of` has made sure.
        #[expect(unsafe_code, reason = "rows are read by a kernel while the rest is computed")]
        unsafe {
            multiply_into(out, shape, &request);
        }
    }
}

impl GemmOperands {
    /// Whether the GEMM is better left to a call.
    pub fn is_small(&self) -> bool {
        let (rows, cols) = (self.out.shape()[0] as usize, self.out.shape()[1] as usize);
        let work = rows.saturating_mul(cols).saturating_mul(self.lhs.shape()[1] as usize);
        // A single column is a single row of the transposed product.
        work <= SMALL || cols == 1
    }
}

/// A type of half precision.
trait Half: Element + Source<f32> {
    /// A matrix as pairs of neighbours in a row, if the processor multiplies those.
    fn pairs(matrix: Matrix<'_, Self>) -> Option<Matrix<'_, Pair>>;
}

impl Half for bf16 {
    fn pairs(matrix: Matrix<'_, Self>) -> Option<Matrix<'_, Pair>> {
        Pair::of_rows(matrix)
    }
}

impl Half for f16 {
    fn pairs(_: Matrix<'_, Self>) -> Option<Matrix<'_, Pair>> {
        None
    }
}

/// A tensor of two dimensions, given all elements of its storage.
fn matrix<'a, S>(tensor: &Tensor, storage: &'a [S]) -> Matrix<'a, S> {
    Matrix { data: &storage[tensor.layout().offset as usize..], shape: shape_of(tensor) }
}

fn shape_of(tensor: &Tensor) -> Shape {
    let (shape, stride) = (tensor.shape(), tensor.stride());
    Shape {
        rows: shape[0] as usize,
        cols: shape[1] as usize,
        // A stride along a single row or column is never walked, whatever it says.
        row_stride: if shape[0] == 1 { 0 } else { stride[0] as usize },
        col_stride: if shape[1] == 1 { 0 } else { stride[1] as usize },
    }
}

impl Terms {
    fn of(call: &ExternCall) -> Option<Self> {
        let Value::Tensor(out) = &call.results else { return None };
        let tensor = |index: usize| call.args.get(index).and_then(Value::as_tensor).cloned();
        let factor = |index: usize| call.args.get(index).and_then(Value::as_scalar).map(pyrite_tensor::Scalar::to_f64);
        let (lhs, rhs, bias, scale) = match call.op.def.lower {
            Lower::Extern(ExternKind::Mm) => (tensor(0)?, tensor(1)?, None, 1.0),
            Lower::Extern(ExternKind::Addmm) => (tensor(1)?, tensor(2)?, Some((tensor(0)?, factor(3)?)), factor(4)?),
            _ => return None,
        };
        let dtype = out.meta.dtype;
        let known = match dtype {
            DType::F64 => !f64::isas().is_empty(),
            DType::F32 | DType::BF16 | DType::F16 => !f32::isas().is_empty(),
            _ => false,
        };
        let is_row = |bias: &Place| {
            bias.meta.rank() == 1 && bias.meta.shape[0].is_eq(&out.meta.shape[1]) && bias.meta.stride[0].is_eq(1)
        };
        // A factor of zero means that the bias is not looked at.
        let bias = bias.filter(|(_, factor)| *factor != 0.0).map(|(place, factor)| {
            if factor == 1.0 && is_row(&place) { Bias::Row(place) } else { Bias::Whole(place, factor) }
        });
        let takes = |bias: &Bias| matches!(bias, Bias::Row(_)) || matches!(dtype, DType::F32 | DType::F64);
        let same = [&lhs, &rhs].into_iter().chain(bias.as_ref().map(Bias::place)).all(|p| p.meta.dtype == dtype);
        let fits = known && same && scale != 0.0 && bias.as_ref().is_none_or(takes);
        fits.then(|| Self { lhs, rhs, bias, out: out.clone(), scale })
    }
}

/// A weight of which something is kept that took time to make: its panels, or its transformed windows.
#[derive(Default)]
pub struct Weight(Mutex<Kept>);

/// What the last call brought and how it was read, and what was made of it, if an earlier one brought the same.
#[derive(Default)]
struct Kept {
    of: Option<(Fingerprint, Layout, TypeId)>,
    made: Option<Arc<dyn Any + Send + Sync>>,
    /// How many calls in a row brought something else.
    changes: u32,
}

/// Bytes that are kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Something that counts as kept.
pub struct Counted<K> {
    /// What is kept.
    pub made: K,
    bytes: usize,
}

impl<K> Drop for Counted<K> {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Weight {
    /// The panels of a matrix whose memory is ours and held by the caller for reading, if this is not the first call with
    /// it.
    fn panels<S: Source<T>, T: Lane>(&self, tensor: &Tensor, matrix: Matrix<'_, S>) -> Option<Arc<Counted<Packed<T>>>> {
        tensor.storage().version()?;
        self.kept(tensor, TypeId::of::<S>(), || Packed::<T>::new(matrix), Packed::nbytes)
    }

    /// What is made of a tensor that is read as elements of a type and whose memory the caller holds for reading, if this
    /// is not the first call with it.
    pub fn kept<K: Send + Sync + 'static>(
        &self,
        tensor: &Tensor,
        read_as: TypeId,
        make: impl FnOnce() -> Option<K>,
        nbytes: impl FnOnce(&K) -> usize,
    ) -> Option<Arc<Counted<K>>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tensor.storage().version().is_none() && lock().changes >= CHANGES {
            return None;
        }
        let now = Some((Fingerprint::of(tensor), tensor.layout().clone(), read_as));
        let mut kept = lock();
        if kept.of != now {
            *kept = Kept { of: now, made: None, changes: kept.changes + 1 };
            return None;
        }
        kept.changes = 0;
        let least = tensor.numel() * tensor.dtype().size();
        if kept.made.is_none() && KEPT.load(Ordering::Relaxed) + least <= KEEP_BYTES {
            // Making it waits for other threads, and what this one does meanwhile may want the lock.
            drop(kept);
            let made = make()?;
            let bytes = nbytes(&made);
            KEPT.fetch_add(bytes, Ordering::Relaxed);
            let counted = Arc::new(Counted { made, bytes });
            kept = lock();
            if kept.of == now {
                kept.made = Some(counted.clone());
            }
            return Some(counted);
        }
        kept.made.clone()?.downcast().ok()
    }
}
