//! What is known of a tensor without its data.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Layout, Scalar, Tensor};
use smallvec::SmallVec;

use crate::OpError;

/// Sizes or strides that may be symbolic.
pub type SymDims = SmallVec<[SymInt; 5]>;

/// Where a tensor lives. Pyrite computes on the CPU; other devices are carried through.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// Another device by its name, such as `cuda:0`.
    Other(Arc<str>),
}

impl Device {
    /// The device of that name; `cpu:0` is the CPU.
    pub fn from_name(name: &str) -> Self {
        match name {
            "cpu" | "cpu:0" => Self::Cpu,
            other => Self::Other(other.into()),
        }
    }

    /// The kind of device, without its number: `cuda` for `cuda:0`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Other(name) => name.split_once(':').map_or(name, |(kind, _)| kind),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// The identity of a storage: two values alias when they have the same one. Never printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageId(u64);

impl StorageId {
    /// An identity that no other value has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Identities of real storages are even.
        Self(NEXT.fetch_add(2, Ordering::Relaxed))
    }

    /// The identity of a real storage, which no other ever has.
    pub fn of(tensor: &Tensor) -> Self {
        Self(tensor.storage().id() as u64 * 2)
    }
}

/// A tensor without its data.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Size per dimension.
    pub shape: SymDims,
    /// Stride per dimension, in elements.
    pub stride: SymDims,
    /// The first element's position in the storage.
    pub offset: SymInt,
    /// Element type.
    pub dtype: DType,
    /// Where it lives.
    pub device: Device,
    /// Whether gradients are wanted for it.
    pub requires_grad: bool,
    /// Whether it is a leaf of the autograd graph that the program was captured in.
    pub is_leaf: bool,
    /// Which storage it is a view of.
    pub storage: StorageId,
    /// Whether it stands for a Python number.
    pub number: bool,
}

/// Two metas are equal when they describe the same kind of tensor; identity of storages is not compared.
impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.stride == other.stride
            && self.offset == other.offset
            && self.dtype == other.dtype
            && self.device == other.device
            && self.requires_grad == other.requires_grad
    }
}

impl Meta {
    /// A fresh dense tensor, last dimension fastest.
    pub fn contiguous(shape: &[SymInt], dtype: DType) -> Self {
        Self::strided(shape, &contiguous_strides(shape), dtype)
    }

    /// A fresh tensor with these strides.
    pub fn strided(shape: &[SymInt], stride: &[SymInt], dtype: DType) -> Self {
        Self {
            shape: shape.into(),
            stride: stride.into(),
            offset: SymInt::Int(0),
            dtype,
            device: Device::Cpu,
            requires_grad: false,
            is_leaf: true,
            storage: StorageId::fresh(),
            number: false,
        }
    }

    /// A fresh dense tensor of numeric sizes.
    pub fn of_shape(shape: &[i64], dtype: DType) -> Self {
        Self::contiguous(&shape.iter().map(|d| SymInt::Int(*d)).collect::<SymDims>(), dtype)
    }

    /// A Python number where a tensor is wanted.
    pub fn number(value: Scalar) -> Self {
        Self { number: true, ..Self::contiguous(&[], value.dtype()) }
    }

    /// What a real tensor looks like.
    pub fn of(tensor: &Tensor) -> Self {
        let dims = |d: &[i64]| d.iter().map(|v| SymInt::Int(*v)).collect::<SymDims>();
        Self {
            shape: dims(tensor.shape()),
            stride: dims(tensor.stride()),
            offset: SymInt::Int(tensor.layout().offset),
            dtype: tensor.dtype(),
            device: Device::Cpu,
            requires_grad: false,
            is_leaf: true,
            storage: StorageId::of(tensor),
            number: tensor.is_number(),
        }
    }

    /// A view of the same storage.
    #[must_use]
    pub fn view(&self, shape: &[SymInt], stride: &[SymInt], offset: SymInt) -> Self {
        Self { shape: shape.into(), stride: stride.into(), offset, number: false, ..self.clone() }
    }

    /// A fresh tensor of the same device with another shape and type, dense in order.
    #[must_use]
    pub fn fresh(&self, shape: &[SymInt], dtype: DType) -> Self {
        Self { device: self.device.clone(), ..Self::contiguous(shape, dtype) }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> SymInt {
        self.shape.iter().fold(SymInt::Int(1), |n, d| n * d)
    }

    /// The numbers of its layout; an error when a size is symbolic.
    pub fn layout(&self) -> Result<Layout, OpError> {
        let ints = |dims: &[SymInt]| {
            dims.iter()
                .map(|d| d.as_int().ok_or_else(|| OpError::fault(format!("size {d} is not known at run time"))))
                .collect::<Result<_, _>>()
        };
        Ok(Layout {
            shape: ints(&self.shape)?,
            stride: ints(&self.stride)?,
            offset: self.offset.as_int().ok_or_else(|| OpError::fault("a symbolic offset at run time"))?,
        })
    }

    /// Whether it is dense with the last dimension fastest.
    pub fn is_contiguous(&self) -> bool {
        if self.shape.iter().any(|d| d.is_eq(0)) {
            return true;
        }
        let mut expected = SymInt::Int(1);
        for (size, stride) in self.shape.iter().zip(&self.stride).rev() {
            if !size.is_eq(1) {
                if !stride.is_eq(&expected) {
                    return false;
                }
                expected = expected * size;
            }
        }
        true
    }

    /// Whether it is dense in the order that `order` lists from the slowest to the fastest dimension.
    pub fn is_dense_in(&self, order: &[usize]) -> bool {
        let pick = |dims: &SymDims| order.iter().map(|d| dims[*d].clone()).collect::<SymDims>();
        self.rank() == order.len() && self.view(&pick(&self.shape), &pick(&self.stride), SymInt::Int(0)).is_contiguous()
    }

    /// Whether it has four dimensions, the channels fastest.
    pub fn is_channels_last(&self) -> bool {
        self.rank() == 4 && self.is_dense_in(&[0, 2, 3, 1])
    }

    /// Whether it has five dimensions, the channels fastest.
    pub fn is_channels_last_3d(&self) -> bool {
        self.rank() == 5 && self.is_dense_in(&[0, 2, 3, 4, 1])
    }

    /// Whether elements share memory for certain: a dimension of more than one element has stride zero.
    pub fn is_expanded(&self) -> bool {
        self.shape.iter().zip(&self.stride).any(|(size, stride)| stride.is_eq(0) && size.is_gt(1))
    }

    /// Whether every element of a dense block is addressed exactly once, in whatever order.
    pub fn is_dense(&self) -> bool {
        if self.rank() == 1 {
            return self.shape[0].is_lt(2) || self.stride[0].is_eq(1);
        }
        let mut order: SmallVec<[usize; 5]> = (0..self.rank()).collect();
        // Dimensions of size 0 and 1 sort to the end, where they matter no more.
        let small: SmallVec<[bool; 5]> = self.shape.iter().map(|d| d.is_lt(2)).collect();
        sort_dims(&mut order, |a, b| match (small[a], small[b]) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => self.stride[a].is_lt(&self.stride[b]),
        });
        let mut expected = SymInt::Int(1);
        for d in order {
            if small[d] {
                continue;
            }
            if !self.stride[d].is_eq(&expected) {
                return false;
            }
            expected = expected * &self.shape[d];
        }
        true
    }
}

/// A stable insertion sort of dimensions by a strict "comes before", which may be answered from hints.
pub fn sort_dims(order: &mut [usize], before: impl Fn(usize, usize) -> bool) {
    for i in 1..order.len() {
        let mut j = i;
        while j > 0 && before(order[j], order[j - 1]) {
            order.swap(j, j - 1);
            j -= 1;
        }
    }
}

/// The strides of a dense tensor, last dimension fastest; a size of 0 counts as 1.
pub fn contiguous_strides(shape: &[SymInt]) -> SymDims {
    let mut strides: SymDims = shape.into();
    let mut next = SymInt::Int(1);
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = next.clone();
        next = match size {
            SymInt::Int(v) => next * (*v).max(1),
            other => next * other,
        };
    }
    strides
}

/// The strides of a dense tensor whose dimensions lie in the order given, slowest first.
pub fn strides_in_order(shape: &[SymInt], order: &[usize]) -> SymDims {
    let mut strides: SymDims = shape.into();
    let mut next = SymInt::Int(1);
    for d in order.iter().rev() {
        strides[*d] = next.clone();
        next = match &shape[*d] {
            SymInt::Int(v) => next * (*v).max(1),
            other => next * other,
        };
    }
    strides
}

/// `f32[2, 3]` with strides where they are not the dense ones, as FX annotates values.
impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (index, size) in self.shape.iter().enumerate() {
            write!(f, "{}{size}", if index > 0 { ", " } else { "" })?;
        }
        f.write_str("]")?;
        write!(f, "{}", self.device)
    }
}
