//! What a phase reduces: one accumulator for the row, or one for each row that lies in the tile.

use pyrite_loops::{Reduction, Type};

use super::eval::Reg;

/// The state of a reduction.
pub(super) struct Accumulator {
    op: Reduction,
    /// The best or the combined value; single precision is summed in double precision.
    value: Reg,
    /// The index that goes with the best value.
    index: Vec<i64>,
}

/// What a reduction needs of a number.
trait Number: Copy + PartialOrd {
    const LEAST: Self;
    const MOST: Self;
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn nan(self) -> bool;
}

macro_rules! float {
    ($ty:ty) => {
        impl Number for $ty {
            const LEAST: Self = <$ty>::NEG_INFINITY;
            const MOST: Self = <$ty>::INFINITY;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn nan(self) -> bool {
                self.is_nan()
            }
        }
    };
}

macro_rules! integer {
    ($ty:ty) => {
        impl Number for $ty {
            const LEAST: Self = <$ty>::MIN;
            const MOST: Self = <$ty>::MAX;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn nan(self) -> bool {
                false
            }
        }
    };
}

float!(f32);
float!(f64);
integer!(i32);
integer!(i64);

fn start<T: Number>(op: Reduction) -> T {
    match op {
        Reduction::Sum | Reduction::Any => T::ZERO,
        Reduction::Prod | Reduction::All => T::ONE,
        Reduction::Max | Reduction::ArgMax => T::LEAST,
        Reduction::Min | Reduction::ArgMin => T::MOST,
    }
}

/// Whether a value takes the place of the best one so far.
fn better<T: Number>(op: Reduction, new: T, old: T) -> bool {
    let wins = if matches!(op, Reduction::Max | Reduction::ArgMax) { new > old } else { new < old };
    wins || (new.nan() && !old.nan())
}

fn join<T: Number>(op: Reduction, old: T, new: T) -> T {
    match op {
        Reduction::Sum => old.plus(new),
        Reduction::Prod => old.times(new),
        _ if better(op, new, old) => new,
        _ => old,
    }
}

/// Joins values into accumulators: lane by lane, or all into the first.
fn absorb<T: Number, V: Copy>(
    op: Reduction,
    (to, at): (&mut [T], &mut [i64]),
    (from, index): (&[V], Option<&[i64]>),
    apart: bool,
    wide: impl Fn(V) -> T,
) {
    match index {
        Some(index) => {
            for (lane, (new, index)) in from.iter().zip(index).enumerate() {
                let lane = if apart { lane } else { 0 };
                let new = wide(*new);
                if better(op, new, to[lane]) || (new == to[lane] && *index < at[lane]) {
                    (to[lane], at[lane]) = (new, *index);
                }
            }
        }
        None if apart => to.iter_mut().zip(from).for_each(|(to, new)| *to = join(op, *to, wide(*new))),
        None => to[0] = from.iter().fold(to[0], |old, new| join(op, old, wide(*new))),
    }
}

fn absorb_bool(op: Reduction, to: &mut [bool], from: &[bool], apart: bool) {
    for (lane, new) in from.iter().enumerate() {
        let to = &mut to[if apart { lane } else { 0 }];
        *to = if op == Reduction::All { *to & new } else { *to | new };
    }
}

impl Accumulator {
    pub(super) fn new(op: Reduction, ty: Type, lanes: usize) -> Self {
        let kept = if (op, ty) == (Reduction::Sum, Type::F32) { Type::F64 } else { ty };
        Self { op, value: Reg::zeros(kept, lanes), index: vec![0; lanes] }
    }

    pub(super) fn reset(&mut self) {
        self.index.fill(i64::MAX);
        match &mut self.value {
            Reg::Bool(v) => v.fill(self.op == Reduction::All),
            Reg::I32(v) => v.fill(start(self.op)),
            Reg::I64(v) => v.fill(start(self.op)),
            Reg::F32(v) => v.fill(start(self.op)),
            Reg::F64(v) => v.fill(start(self.op)),
        }
    }

    /// Takes in a tile in which every lane is a row of its own.
    pub(super) fn each(&mut self, value: &Reg, index: Option<&Reg>, len: usize) {
        self.take(value, index, len, true);
    }

    /// Takes in a tile whose lanes are all of one row.
    pub(super) fn all(&mut self, value: &Reg, index: Option<&Reg>, len: usize) {
        self.take(value, index, len, false);
    }

    fn take(&mut self, value: &Reg, index: Option<&Reg>, len: usize, apart: bool) {
        let index = index.map(|i| &i.i64()[..len]);
        let (op, at) = (self.op, &mut self.index[..]);
        match (&mut self.value, value) {
            (Reg::Bool(to), Reg::Bool(from)) => absorb_bool(op, to, &from[..len], apart),
            (Reg::I32(to), Reg::I32(from)) => absorb(op, (to, at), (&from[..len], index), apart, |x| x),
            (Reg::I64(to), Reg::I64(from)) => absorb(op, (to, at), (&from[..len], index), apart, |x| x),
            (Reg::F32(to), Reg::F32(from)) => absorb(op, (to, at), (&from[..len], index), apart, |x| x),
            (Reg::F64(to), Reg::F32(from)) => absorb(op, (to, at), (&from[..len], index), apart, f64::from),
            (Reg::F64(to), Reg::F64(from)) => absorb(op, (to, at), (&from[..len], index), apart, |x| x),
            _ => unreachable!("an accumulator has the type of what it takes in"),
        }
    }

    /// Gives what was reduced.
    pub(super) fn finish(&self, out: &mut Reg) {
        let picks = matches!(self.op, Reduction::ArgMax | Reduction::ArgMin);
        match (out, &self.value) {
            (Reg::I64(out), _) if picks => out.copy_from_slice(&self.index),
            (Reg::F32(out), Reg::F64(sums)) => out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum as f32),
            (out, value) => out.clone_from(value),
        }
    }
}
