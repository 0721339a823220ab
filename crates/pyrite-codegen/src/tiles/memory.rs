//! Between memory and registers: loads widen, stores narrow.

#![expect(unsafe_code, reason = "tiles are read from and written to raw memory")]

use half::{bf16, f16};
use pyrite_loops::Write;
use pyrite_tensor::DType;

use super::eval::Reg;

/// Where an access is at the first position of a tile, and how it goes on.
pub(crate) struct LanePointer {
    pub(crate) pointer: *mut u8,
    /// How many elements lie between neighbours.
    pub(crate) step: i64,
    pub(crate) dtype: DType,
}

impl LanePointer {
    /// The address of the element of a lane, `further` elements away.
    fn at<T>(&self, lane: usize, further: i64) -> *mut T {
        let elements = self.step.wrapping_mul(lane as i64).wrapping_add(further);
        self.pointer.cast::<T>().wrapping_offset(elements as isize)
    }

    /// # Safety
    /// The elements that the lanes reach are readable.
    unsafe fn read<T: Copy, R>(&self, further: Option<&Reg>, out: &mut [R], len: usize, widen: impl Fn(T) -> R) {
        let further = further.map(Reg::i64);
        for (lane, out) in out[..len].iter_mut().enumerate() {
            // SAFETY: by the contract of this function.
            *out = widen(unsafe { self.at::<T>(lane, further.map_or(0, |f| f[lane])).read_unaligned() });
        }
    }

    /// # Safety
    /// The elements that the lanes reach are writable.
    unsafe fn write<T, R: Copy>(&self, value: &[R], len: usize, narrow: impl Fn(R) -> T) {
        for (lane, value) in value[..len].iter().enumerate() {
            // SAFETY: by the contract of this function.
            unsafe { self.at::<T>(lane, 0).write_unaligned(narrow(*value)) }
        }
    }

    /// # Safety
    /// The elements that the lanes reach are readable and writable.
    unsafe fn change<T, R: Copy>(
        &self,
        at: &Reg,
        value: &[R],
        len: usize,
        change: impl Fn(Option<T>, R) -> T,
        write: Write,
    ) {
        let at = at.i64();
        for (lane, value) in value[..len].iter().enumerate() {
            let pointer = self.at::<T>(lane, at[lane]);
            // SAFETY: by the contract of this function.
            unsafe {
                let old = (write == Write::Add).then(|| pointer.read_unaligned());
                pointer.write_unaligned(change(old, *value));
            }
        }
    }

    /// Loads a tile, each lane `further` elements away if that is given.
    ///
    /// # Safety
    /// The elements that the lanes reach are readable.
    pub(super) unsafe fn load(&self, further: Option<&Reg>, out: &mut Reg, len: usize) {
        // SAFETY: by the contract of this function.
        unsafe {
            match (self.dtype, out) {
                (DType::Bool, Reg::Bool(out)) => self.read(further, out, len, |x: u8| x != 0),
                (DType::U8, Reg::I32(out)) => self.read(further, out, len, |x: u8| i32::from(x)),
                (DType::I8, Reg::I32(out)) => self.read(further, out, len, |x: i8| i32::from(x)),
                (DType::I16, Reg::I32(out)) => self.read(further, out, len, |x: i16| i32::from(x)),
                (DType::I32, Reg::I32(out)) => self.read(further, out, len, |x: i32| x),
                (DType::I64, Reg::I64(out)) => self.read(further, out, len, |x: i64| x),
                (DType::F16, Reg::F32(out)) => self.read(further, out, len, |x: f16| x.to_f32()),
                (DType::BF16, Reg::F32(out)) => self.read(further, out, len, |x: bf16| x.to_f32()),
                (DType::F32, Reg::F32(out)) => self.read(further, out, len, |x: f32| x),
                (DType::F64, Reg::F64(out)) => self.read(further, out, len, |x: f64| x),
                (dtype, _) => unreachable!("no register of this type holds {dtype}"),
            }
        }
    }

    /// Stores a tile.
    ///
    /// # Safety
    /// The elements that the lanes reach are writable.
    pub(super) unsafe fn store(&self, value: &Reg, len: usize) {
        // SAFETY: by the contract of this function.
        unsafe {
            match (self.dtype, value) {
                (DType::Bool, Reg::Bool(v)) => self.write(v, len, u8::from),
                (DType::U8 | DType::I8, Reg::I32(v)) => self.write(v, len, |x| x as i8),
                (DType::I16, Reg::I32(v)) => self.write(v, len, |x| x as i16),
                (DType::I32, Reg::I32(v)) => self.write(v, len, |x| x),
                (DType::I64, Reg::I64(v)) => self.write(v, len, |x| x),
                (DType::F16, Reg::F32(v)) => self.write(v, len, f16::from_f32),
                (DType::BF16, Reg::F32(v)) => self.write(v, len, bf16::from_f32),
                (DType::F32, Reg::F32(v)) => self.write(v, len, |x| x),
                (DType::F64, Reg::F64(v)) => self.write(v, len, |x| x),
                (dtype, _) => unreachable!("no register of this type holds {dtype}"),
            }
        }
    }

    /// Writes lane after lane, each `at` elements away.
    ///
    /// # Safety
    /// The elements that the lanes reach are readable and writable.
    pub(crate) unsafe fn scatter(&self, at: &Reg, value: &Reg, write: Write, len: usize) {
        // SAFETY: by the contract of this function.
        unsafe {
            match (self.dtype, value) {
                (DType::Bool, Reg::Bool(v)) => {
                    self.change(at, v, len, |old: Option<u8>, x| u8::from(old.is_some_and(|o| o != 0) | x), write);
                }
                (DType::U8 | DType::I8, Reg::I32(v)) => {
                    self.change(at, v, len, |old: Option<i8>, x| old.unwrap_or(0).wrapping_add(x as i8), write);
                }
                (DType::I16, Reg::I32(v)) => {
                    self.change(at, v, len, |old: Option<i16>, x| old.unwrap_or(0).wrapping_add(x as i16), write);
                }
                (DType::I32, Reg::I32(v)) => {
                    self.change(at, v, len, |old: Option<i32>, x| old.unwrap_or(0).wrapping_add(x), write);
                }
                (DType::I64, Reg::I64(v)) => {
                    self.change(at, v, len, |old: Option<i64>, x| old.unwrap_or(0).wrapping_add(x), write);
                }
                (DType::F16, Reg::F32(v)) => {
                    let add = |old: Option<f16>, x: f32| f16::from_f32(old.map_or(x, |o| o.to_f32() + x));
                    self.change(at, v, len, add, write);
                }
                (DType::BF16, Reg::F32(v)) => {
                    let add = |old: Option<bf16>, x: f32| bf16::from_f32(old.map_or(x, |o| o.to_f32() + x));
                    self.change(at, v, len, add, write);
                }
                (DType::F32, Reg::F32(v)) => {
                    self.change(at, v, len, |old: Option<f32>, x| old.map_or(x, |o| o + x), write);
                }
                (DType::F64, Reg::F64(v)) => {
                    self.change(at, v, len, |old: Option<f64>, x| old.map_or(x, |o| o + x), write);
                }
                (dtype, _) => unreachable!("no register of this type holds {dtype}"),
            }
        }
    }
}
