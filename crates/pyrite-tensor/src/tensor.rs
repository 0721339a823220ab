//! The tensor: a typed, strided view of a shared storage.

use half::{bf16, f16};
use num_complex::Complex64;

use crate::layout::{self, Dims, Layout};
use crate::storage::{Reading, Storage};
use crate::walk::Walk;
use crate::{DType, Element, Scalar, dispatch};

/// Why a tensor cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The view leaves its storage.
    #[error(
        "a view of shape {shape:?}, stride {stride:?}, offset {offset} needs {needed} bytes, the storage has {present}"
    )]
    OutOfBounds {
        /// Size per dimension.
        shape: Vec<i64>,
        /// Stride per dimension.
        stride: Vec<i64>,
        /// First element.
        offset: i64,
        /// Bytes the view reaches; `u64::MAX` when that does not fit.
        needed: u64,
        /// Bytes of the storage.
        present: u64,
    },
    /// Negative sizes, strides or offsets, or lists of different lengths.
    #[error("shape {shape:?}, stride {stride:?}, offset {offset} do not describe a tensor")]
    Malformed {
        /// Size per dimension.
        shape: Vec<i64>,
        /// Stride per dimension.
        stride: Vec<i64>,
        /// First element.
        offset: i64,
    },
    /// More memory than can be asked for.
    #[error("a tensor of shape {shape:?} and type {dtype} is too large")]
    TooLarge {
        /// Size per dimension.
        shape: Vec<i64>,
        /// Element type.
        dtype: DType,
    },
}

/// No tensor may need more bytes than this; it turns absurd sizes into errors before memory is asked for.
pub const MAX_BYTES: i64 = 1 << 40;

/// A typed, strided view of a shared storage.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Storage,
    dtype: DType,
    layout: Layout,
    number: bool,
}

impl Tensor {
    /// A view of a storage.
    pub fn new(storage: Storage, dtype: DType, layout: Layout) -> Result<Self, TensorError> {
        let negative = |dims: &[i64]| dims.iter().any(|d| *d < 0);
        if layout.shape.len() != layout.stride.len()
            || negative(&layout.shape)
            || negative(&layout.stride)
            || layout.offset < 0
        {
            return Err(TensorError::Malformed {
                shape: layout.shape.to_vec(),
                stride: layout.stride.to_vec(),
                offset: layout.offset,
            });
        }
        let needed = layout.span().and_then(|n| n.checked_mul(dtype.size() as i64));
        let empty = layout.shape.contains(&0);
        if !empty && needed.is_none_or(|n| n as u64 > storage.nbytes() as u64) {
            return Err(TensorError::OutOfBounds {
                shape: layout.shape.to_vec(),
                stride: layout.stride.to_vec(),
                offset: layout.offset,
                needed: needed.map_or(u64::MAX, |n| n as u64),
                present: storage.nbytes() as u64,
            });
        }
        Ok(Self { storage, dtype, layout, number: false })
    }

    /// A fresh tensor of unspecified content with the given strides.
    pub fn empty_strided(shape: &[i64], stride: &[i64], dtype: DType) -> Result<Self, TensorError> {
        Self::new(Storage::recycled(Self::bytes_for(shape, stride, dtype)?), dtype, Layout::new(shape, stride, 0))
    }

    /// A fresh dense tensor of unspecified content.
    pub fn empty(shape: &[i64], dtype: DType) -> Result<Self, TensorError> {
        Self::empty_strided(shape, &layout::contiguous_strides(shape), dtype)
    }

    /// A fresh dense tensor of zeros.
    pub fn zeros(shape: &[i64], dtype: DType) -> Result<Self, TensorError> {
        let layout = Layout::contiguous(shape);
        Self::new(Storage::zeroed(Self::bytes_for(shape, &layout.stride, dtype)?), dtype, layout)
    }

    fn bytes_for(shape: &[i64], stride: &[i64], dtype: DType) -> Result<usize, TensorError> {
        let layout = Layout::new(shape, stride, 0);
        layout
            .span()
            .and_then(|n| n.checked_mul(dtype.size() as i64))
            .filter(|n| (0..=MAX_BYTES).contains(n) && shape.iter().all(|d| *d >= 0))
            .map(|n| n as usize)
            .ok_or(TensorError::TooLarge { shape: shape.to_vec(), dtype })
    }

    /// A dense tensor with these elements in order.
    ///
    /// # Panics
    /// When the number of elements is not that of the shape.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[i64]) -> Self {
        assert_eq!(elements.len() as i64, layout::numel(shape), "elements do not fill shape {shape:?}");
        Self {
            storage: Storage::from_slice(elements),
            dtype: T::DTYPE,
            layout: Layout::contiguous(shape),
            number: false,
        }
    }

    /// A tensor without dimensions.
    pub fn scalar(value: Scalar, dtype: DType) -> Self {
        dispatch!(dtype, T => {
            let element: T = match value {
                Scalar::Bool(_) | Scalar::Int(_) => T::from_i64(value.to_i64()),
                Scalar::Float(v) => Element::from_f64(v),
                Scalar::Complex(v) => T::from_c128(v),
            };
            Self::from_slice(&[element], &[])
        })
    }

    /// A Python number where a tensor is wanted: it has the category's widest type, and promotion treats it as a
    /// number.
    pub fn number(value: Scalar) -> Self {
        Self { number: true, ..Self::scalar(value, value.dtype()) }
    }

    /// Whether it stands for a Python number.
    pub fn is_number(&self) -> bool {
        self.number
    }

    /// Its storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where its elements lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Size per dimension.
    pub fn shape(&self) -> &[i64] {
        &self.layout.shape
    }

    /// Stride per dimension.
    pub fn stride(&self) -> &[i64] {
        &self.layout.stride
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.layout.numel() as usize
    }

    /// The tensor in the memory that its owner has now; an error where that has become too small.
    pub fn current(&self) -> Result<Self, TensorError> {
        let storage = self.storage.current();
        if storage.same(&self.storage) {
            return Ok(self.clone());
        }
        Ok(Self { number: self.number, ..Self::new(storage, self.dtype, self.layout.clone())? })
    }

    /// Another view of the same storage, maybe with another element type.
    pub fn view(&self, dtype: DType, layout: Layout) -> Result<Self, TensorError> {
        Self::new(self.storage.clone(), dtype, layout)
    }

    /// It with another shape that holds the same elements; a copy only where the layout is not dense in order.
    #[must_use]
    pub fn reshaped(&self, shape: &[i64]) -> Self {
        let base = self.contiguous();
        debug_assert_eq!(layout::numel(shape), base.layout.numel());
        let layout = Layout { offset: base.layout.offset, ..Layout::contiguous(shape) };
        Self { layout, number: false, ..base }
    }

    /// It broadcast to a shape, without a copy.
    ///
    /// # Panics
    /// When the shapes do not broadcast; shape rules check that before.
    #[must_use]
    pub fn expanded(&self, shape: &[i64]) -> Self {
        let stride = broadcast_strides(self.shape(), self.stride(), shape);
        Self {
            layout: Layout { shape: shape.into(), stride, offset: self.layout.offset },
            number: false,
            ..self.clone()
        }
    }

    /// It with its dimensions in another order, without a copy.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        let pick = |dims: &[i64]| order.iter().map(|d| dims[*d]).collect::<Dims>();
        let layout = Layout { shape: pick(self.shape()), stride: pick(self.stride()), offset: self.layout.offset };
        Self { layout, ..self.clone() }
    }

    /// Itself if dense in order, else a dense copy.
    #[must_use]
    pub fn contiguous(&self) -> Self {
        if self.layout.is_contiguous() {
            return self.clone();
        }
        dispatch!(self.dtype, T => Self::from_slice(&self.to_vec::<T>(), self.shape()))
    }

    /// The elements in order, of exactly this type.
    ///
    /// # Panics
    /// When `T` is not the tensor's element type.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        assert_eq!(T::DTYPE, self.dtype, "read as another type");
        let mut out = Vec::with_capacity(self.numel());
        let data = self.storage.read::<T>();
        gather(&data, &self.layout, |v| v, &mut out);
        out
    }

    /// The elements of a dense tensor, borrowed; `None` when it is not dense in order.
    ///
    /// # Panics
    /// When `T` is not the tensor's element type.
    pub fn as_slice<T: Element>(&self) -> Option<Reading<'_, T>> {
        assert_eq!(T::DTYPE, self.dtype, "read as another type");
        self.layout.is_contiguous().then(|| {
            let (start, len) = (self.layout.offset as usize, self.numel());
            Reading::map(self.storage.read::<T>(), |all| if len == 0 { &all[..0] } else { &all[start..start + len] })
        })
    }

    /// The elements in order as real numbers (the real part of complex ones).
    pub fn to_f64s(&self) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.numel());
        dispatch!(self.dtype, T => gather(&self.storage.read::<T>(), &self.layout, T::to_f64, &mut out));
        out
    }

    /// The elements in order as single-precision numbers.
    pub fn to_f32s(&self) -> Vec<f32> {
        let mut out = Vec::with_capacity(self.numel());
        match self.dtype {
            DType::F32 => gather(&self.storage.read::<f32>(), &self.layout, |v| v, &mut out),
            DType::BF16 => gather(&self.storage.read::<bf16>(), &self.layout, widened, &mut out),
            DType::F16 => gather(&self.storage.read::<f16>(), &self.layout, f16::to_f32, &mut out),
            other => {
                dispatch!(other, T => gather(&self.storage.read::<T>(), &self.layout, |v| T::to_f64(v) as f32, &mut out));
            }
        }
        out
    }

    /// The elements in order as integers.
    pub fn to_i64s(&self) -> Vec<i64> {
        let mut out = Vec::with_capacity(self.numel());
        dispatch!(self.dtype, T => gather(&self.storage.read::<T>(), &self.layout, T::to_i64, &mut out));
        out
    }

    /// The elements in order as complex numbers.
    pub fn to_c128s(&self) -> Vec<Complex64> {
        let mut out = Vec::with_capacity(self.numel());
        dispatch!(self.dtype, T => gather(&self.storage.read::<T>(), &self.layout, T::to_c128, &mut out));
        out
    }

    /// The elements in order as bools: what is not zero is true.
    pub fn to_bools(&self) -> Vec<bool> {
        if self.dtype.is_complex() {
            return self.to_c128s().into_iter().map(|v| v.re != 0.0 || v.im != 0.0).collect();
        }
        if self.dtype.is_float() {
            return self.to_f64s().into_iter().map(|v| v != 0.0).collect();
        }
        self.to_i64s().into_iter().map(|v| v != 0).collect()
    }

    /// The single element.
    ///
    /// # Panics
    /// When the tensor is empty.
    pub fn item(&self) -> Scalar {
        match self.dtype {
            DType::Bool => Scalar::Bool(self.to_bools()[0]),
            d if d.is_integral() => Scalar::Int(self.to_i64s()[0]),
            d if d.is_float() => Scalar::Float(self.to_f64s()[0]),
            _ => Scalar::Complex(self.to_c128s()[0]),
        }
    }

    /// A dense copy with another element type.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> Self {
        let shape = self.shape();
        if dtype == self.dtype {
            return dispatch!(dtype, T => Self::from_slice(&self.to_vec::<T>(), shape));
        }
        let mut out = Self::empty(shape, dtype).expect("a tensor of this shape exists");
        out.fill_from(self);
        out
    }

    /// Overwrites every element with those of `source`, which has the same shape and any type. Source and target may
    /// share a storage.
    pub fn fill_from(&mut self, source: &Tensor) {
        self.write_from(source);
    }

    /// As [`Self::fill_from`], through a shared reference: the write goes through the storage's lock.
    ///
    /// # Panics
    /// When the shapes differ.
    pub fn write_from(&self, source: &Tensor) {
        assert_eq!(self.shape(), source.shape(), "a copy between different shapes");
        if source.dtype == self.dtype && !self.storage.same(&source.storage) {
            dispatch!(self.dtype, T => {
                let from = source.storage.read::<T>();
                let mut to = self.storage.write::<T>();
                let walk = Walk::new(self.shape(), &[self.stride(), source.stride()]);
                let (to_base, from_base) = (self.layout.offset, source.layout.offset);
                let (to_step, from_step) = (walk.row_strides[0] as usize, walk.row_strides[1] as usize);
                walk.each_row(|at| {
                    let (t, f) = ((to_base + at[0]) as usize, (from_base + at[1]) as usize);
                    if to_step == 1 && from_step == 1 {
                        to[t..t + walk.row].copy_from_slice(&from[f..f + walk.row]);
                    } else {
                        for i in 0..walk.row {
                            to[t + i * to_step] = from[f + i * from_step];
                        }
                    }
                });
            });
            return;
        }
        match (self.dtype, source.dtype) {
            (to, from) if to == from => dispatch!(to, T => self.write_elements(&source.to_vec::<T>(), |v| v)),
            (_, from) if from.is_complex() => self.write_c128s(&source.to_c128s()),
            (to, from) if to.to_compute() == DType::F32 && from.to_compute() == DType::F32 => {
                self.write_f32s(&source.to_f32s());
            }
            // Its larger half has no place in an `i64`.
            (to, DType::U64) if to.is_inexact() => self.write_f64s(&source.to_f64s()),
            (_, from) if from.is_integral() => self.write_i64s(&source.to_i64s()),
            _ => self.write_f64s(&source.to_f64s()),
        }
    }

    /// Stores elements in order, converting each.
    ///
    /// # Panics
    /// When there are fewer values than elements, or `T` is not the element type.
    pub fn write_elements<V: Copy, T: Element>(&self, values: &[V], convert: impl Fn(V) -> T) {
        assert_eq!(T::DTYPE, self.dtype, "written as another type");
        assert!(values.len() >= self.numel(), "too few values");
        let mut data = self.storage.write::<T>();
        let walk = Walk::new(self.shape(), &[self.stride()]);
        let step = walk.row_strides[0] as usize;
        let mut next = 0;
        walk.each_row(|at| {
            let start = (self.layout.offset + at[0]) as usize;
            let values = &values[next..next + walk.row];
            if step == 1 {
                // Slices of one length, so that the loop can be one of vectors.
                for (to, value) in data[start..start + walk.row].iter_mut().zip(values) {
                    *to = convert(*value);
                }
            } else {
                for (i, value) in values.iter().enumerate() {
                    data[start + i * step] = convert(*value);
                }
            }
            next += walk.row;
        });
    }

    /// Stores real numbers in order, converted to the element type.
    pub fn write_f64s(&self, values: &[f64]) {
        dispatch!(self.dtype, T => self.write_elements(values, <T as Element>::from_f64));
    }

    /// Stores single-precision numbers in order, converted to the element type.
    pub fn write_f32s(&self, values: &[f32]) {
        match self.dtype {
            DType::F32 => self.write_elements(values, |v: f32| v),
            DType::BF16 => self.write_elements(values, narrowed),
            DType::F16 => self.write_elements(values, f16::from_f32),
            other => {
                dispatch!(other, T => self.write_elements(values, |v: f32| <T as Element>::from_f64(f64::from(v))));
            }
        }
    }

    /// Stores integers in order, converted to the element type.
    pub fn write_i64s(&self, values: &[i64]) {
        dispatch!(self.dtype, T => self.write_elements(values, T::from_i64));
    }

    /// Stores complex numbers in order, converted to the element type.
    pub fn write_c128s(&self, values: &[Complex64]) {
        dispatch!(self.dtype, T => self.write_elements(values, T::from_c128));
    }
}

/// A `bf16` is the upper half of a number in single precision.
fn widened(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// The nearest `bf16`, ties to even; what is not a number stays so. Without branches, so that loops of it are of vectors.
fn narrowed(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    bf16::from_bits(if value.is_nan() { (bits >> 16) as u16 | 0x40 } else { rounded })
}

/// Appends the elements of a layout in order.
fn gather<T: Element, V>(data: &[T], layout: &Layout, convert: impl Fn(T) -> V, out: &mut Vec<V>) {
    let walk = Walk::new(&layout.shape, &[&layout.stride]);
    let step = walk.row_strides[0];
    walk.each_row(|at| {
        let start = (layout.offset + at[0]) as usize;
        match step {
            1 => out.extend(data[start..start + walk.row].iter().map(|v| convert(*v))),
            _ => out.extend((0..walk.row).map(|i| convert(data[start + i * step as usize]))),
        }
    });
}

/// The strides that let a tensor be read with a larger shape: zero where a size of one is repeated.
///
/// # Panics
/// When the shapes do not broadcast.
pub fn broadcast_strides(shape: &[i64], stride: &[i64], target: &[i64]) -> Dims {
    let lead = target.len().checked_sub(shape.len()).expect("broadcast to fewer dimensions");
    target
        .iter()
        .enumerate()
        .map(|(d, size)| match d.checked_sub(lead) {
            Some(own) if shape[own] == *size => stride[own],
            Some(own) => {
                assert_eq!(shape[own], 1, "{shape:?} does not broadcast to {target:?}");
                0
            }
            None => 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Tensor {
        Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3])
    }

    #[test]
    fn a_view_shares_its_storage_and_a_write_shows_through() {
        let base = matrix();
        let row = base.view(DType::F32, Layout::new(&[3], &[1], 3)).unwrap();
        row.write_f64s(&[7.0, 8.0, 9.0]);
        assert_eq!(base.to_vec::<f32>(), [0.0, 1.0, 2.0, 7.0, 8.0, 9.0]);
        assert!(base.storage().same(row.storage()));
    }

    #[test]
    fn a_view_outside_its_storage_is_refused() {
        let base = matrix();
        let error = base.view(DType::F32, Layout::new(&[7], &[1], 0)).unwrap_err();
        assert!(matches!(error, TensorError::OutOfBounds { needed: 28, present: 24, .. }));
        assert!(base.view(DType::F64, Layout::new(&[4], &[1], 0)).is_err());
        assert!(base.view(DType::F32, Layout::new(&[1], &[-1], 0)).is_err());
        assert!(Tensor::empty(&[1 << 40, 1 << 40], DType::F32).is_err());
    }

    #[test]
    fn expanding_and_permuting_copy_nothing() {
        let base = matrix();
        let wide = base.permuted(&[1, 0]).expanded(&[2, 3, 2]);
        assert!(wide.storage().same(base.storage()));
        assert_eq!(wide.to_f64s(), [0., 3., 1., 4., 2., 5., 0., 3., 1., 4., 2., 5.]);
        assert_eq!(wide.stride(), [0, 1, 3]);
    }

    #[test]
    fn casting_follows_the_element_rules() {
        let t = Tensor::from_slice(&[1.9f32, -1.9, f32::NAN], &[3]);
        assert_eq!(t.cast(DType::I32).to_vec::<i32>(), [1, -1, i32::MIN]);
        assert_eq!(t.cast(DType::Bool).to_bools(), [true, true, true]);
    }

    #[test]
    fn half_precision_is_reached_through_single_precision() {
        // Just above the middle between two values: rounding must see the last bits.
        let above = f64::from(f32::from_bits(0x3e40_8003));
        let t = Tensor::zeros(&[1], DType::BF16).unwrap();
        t.write_f64s(&[above]);
        assert_eq!(t.to_vec::<half::bf16>()[0].to_bits(), 0x3e41);
        t.write_f32s(&[above as f32]);
        assert_eq!(t.to_vec::<half::bf16>()[0].to_bits(), 0x3e41);
        assert_eq!(Tensor::scalar(Scalar::Float(above), DType::BF16).to_vec::<half::bf16>()[0].to_bits(), 0x3e41);
    }

    fn converts_many_like_one<T: Element>(every: &[u16], singles: &[f32], of: fn(u16) -> T, bits: fn(T) -> u16) {
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        let halves: Vec<T> = every.iter().map(|bits| of(*bits)).collect();
        let wide = Tensor::from_slice(&halves, &[halves.len() as i64]).to_f32s();
        assert!(wide.iter().zip(&halves).all(|(wide, half)| same(*wide, T::to_f64(*half) as f32)));
        let target = Tensor::empty(&[singles.len() as i64, 2], T::DTYPE).unwrap();
        let dense = Tensor::empty(&[singles.len() as i64], T::DTYPE).unwrap();
        let strided = target.view(T::DTYPE, Layout::new(&[singles.len() as i64], &[2], 0)).unwrap();
        for place in [dense, strided] {
            place.write_f32s(singles);
            for (found, single) in place.to_vec::<T>().into_iter().zip(singles) {
                let one = <T as Element>::from_f64(f64::from(*single));
                let (wide, expected) = (T::to_f64(found), T::to_f64(one));
                assert!(
                    bits(found) == bits(one) || wide.is_nan() && expected.is_nan(),
                    "{single:e}: {wide} {expected}"
                );
            }
        }
    }

    /// Loops of conversions round like the conversion of one element, everywhere.
    #[test]
    fn many_halves_are_converted_like_one() {
        let every: Vec<u16> = (0..=u16::MAX).collect();
        // All exponents and signs, with mantissas around every tie.
        let near = |high: u16| [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff].map(|low| u32::from(high) << 16 | low);
        let singles: Vec<f32> = every.iter().flat_map(|high| near(*high)).map(f32::from_bits).collect();
        converts_many_like_one::<bf16>(&every, &singles, bf16::from_bits, bf16::to_bits);
        converts_many_like_one::<f16>(&every, &singles, f16::from_bits, f16::to_bits);
    }

    #[test]
    fn a_copy_within_one_storage_reads_before_it_writes() {
        let base = matrix();
        let left = base.view(DType::F32, Layout::new(&[5], &[1], 0)).unwrap();
        let right = base.view(DType::F32, Layout::new(&[5], &[1], 1)).unwrap();
        right.write_from(&left);
        assert_eq!(base.to_f64s(), [0., 0., 1., 2., 3., 4.]);
    }
}
