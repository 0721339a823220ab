//! The vector code of a region: straight-line operations over all lanes, in the order they run.
//!
//! A region is what the innermost loop of a phase does. Its operations are built once; those that change nothing and
//! depend on nothing that changes within the loop are *invariant* and computed ahead of it. Equal invariant operations
//! are written down once.

pub(super) use pyrite_loops::Shift;
use pyrite_loops::{AccessId, AxisId, Binary, Type, Unary};

/// A value, by the position of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct V(pub(super) u32);

/// What a value needs to be kept: 32 bits or 64 bits for each lane, or one bool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    W32,
    W64,
    Mask,
}

impl Kind {
    pub(super) fn of(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::Mask,
            Type::I32 | Type::F32 => Self::W32,
            Type::I64 | Type::F64 => Self::W64,
        }
    }
}

/// Arithmetic as the processor has it: `Max` and `Min` of floats give the second value unless the first one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    /// The 64-bit product of the low halves of 64-bit lanes.
    MulLow,
    /// Each 64-bit lane by the number in the other.
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
    Xor,
    /// Not the first, and the second.
    AndNot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cond {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// One of the two is NaN.
    Unordered,
}

/// How floats become integers, of either type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Nearest,
    Down,
    Up,
    Zero,
}

/// How elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    I8,
    U8,
    I16,
    U16,
    F16,
    B32,
    B64,
}

impl Element {
    pub(super) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
        }
    }

    pub(super) fn kind(self) -> Kind {
        if self == Self::B64 { Kind::W64 } else { Kind::W32 }
    }
}

/// Where the elements of the lanes are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Addressing {
    /// Side by side.
    Row,
    /// Side by side, as many elements further as a value tells that is the same in all lanes.
    RowAt(V),
    /// All the same.
    Same,
    /// The same one, as many elements further as a value tells that is the same in all lanes.
    SameAt(V),
    /// Each as many elements further as its 32-bit lane tells.
    Steps(V),
    /// Each as many elements further as its 64-bit lane tells.
    At(V),
    /// Transposed before, in a square of the frame from there on.
    Transposed(u32),
    /// Copied one by one, along the step of the access.
    OneByOne,
    /// Copied one by one, along the step of the access and as many elements further as each 64-bit lane tells.
    OneByOneAt(V),
}

/// A Rust function that is called for all lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Routine {
    /// The function of a patch.
    SlowPath(Unary, Type),
    Binary(Binary, Type),
    Cast(Type, Type),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VectorOp {
    /// The same bits in every lane; a mask is all true or all false.
    Const(u64, Kind),
    /// The number of each lane, counted from zero.
    Lanes(Kind),
    /// A vector in the frame.
    Slot(u32, Kind),
    /// Writes a vector to the frame.
    SetSlot(u32, V),
    /// A number of the call.
    Number(u32),
    /// The index of an axis at the first lane.
    Index(AxisId),
    /// The step of an access along the lanes, in 32 bits.
    LaneStep(AccessId),
    /// The same, in 64 bits.
    LaneStepWide(AccessId),
    Alu(Alu, Type, V, V),
    /// The product of two, and a third added.
    Fma(Type, V, V, V),
    /// A third less the product of two.
    Fnma(Type, V, V, V),
    Sqrt(Type, V),
    Round(Type, Rounding, V),
    Shift(Shift, Kind, V, u32),
    Logic(Logic, V, V),
    Cmp(Cond, Type, V, V),
    Select(V, V, V),
    /// Between types of numbers; floats become integers towards zero.
    Convert(Type, Type, V),
    /// The value times two to the power of a whole float, rounded once.
    Scale(Type, V, V),
    /// Single precision rounded to what half precision can hold.
    ThroughHalf(V),
    /// The first lane in every lane.
    Splat(V),
    /// Every lane has the value of the lane whose number differs by a power of two.
    Swap(V, u32),
    Load(AccessId, Element, Addressing),
    Store(AccessId, Element, Addressing, V),
    /// Adds to elements one by one, each as many elements further as its 64-bit lane tells.
    AddAt {
        access: AccessId,
        at: V,
        value: V,
    },
    /// Fails the call if a lane that counts is true.
    Check(V),
    /// What a function gives where a mask is true, else a value.
    Patch {
        routine: Routine,
        a: V,
        b: V,
        mask: V,
        value: V,
    },
    /// What a function gives.
    Call {
        routine: Routine,
        a: V,
        b: V,
    },
    /// An accumulator.
    Acc(u32, Kind),
    SetAcc(u32, V),
    /// Whether the lane counts.
    Active,
}

impl VectorOp {
    pub(super) fn each_operand(&self, mut f: impl FnMut(V)) {
        match *self {
            Self::Const(..)
            | Self::Lanes(_)
            | Self::Slot(..)
            | Self::Number(_)
            | Self::Index(_)
            | Self::LaneStep(_)
            | Self::LaneStepWide(_)
            | Self::Acc(..)
            | Self::Active => {}
            Self::SetSlot(_, a)
            | Self::SetAcc(_, a)
            | Self::Sqrt(_, a)
            | Self::Round(_, _, a)
            | Self::Shift(_, _, a, _)
            | Self::Convert(_, _, a)
            | Self::ThroughHalf(a)
            | Self::Splat(a)
            | Self::Swap(a, _)
            | Self::Check(a) => f(a),
            Self::Alu(_, _, a, b) | Self::Logic(_, a, b) | Self::Cmp(_, _, a, b) | Self::Scale(_, a, b) => {
                f(a);
                f(b);
            }
            Self::Call { a, b, .. } => {
                f(a);
                f(b);
            }
            Self::Fma(_, a, b, c) | Self::Fnma(_, a, b, c) | Self::Select(a, b, c) => {
                f(a);
                f(b);
                f(c);
            }
            Self::Patch { a, b, mask, value, .. } => {
                f(a);
                f(b);
                f(mask);
                f(value);
            }
            Self::Load(_, _, place) => place.operand().into_iter().for_each(f),
            Self::Store(_, _, place, value) => {
                place.operand().into_iter().for_each(&mut f);
                f(value);
            }
            Self::AddAt { at, value, .. } => {
                f(at);
                f(value);
            }
        }
    }

    /// Whether it gives nothing.
    pub(super) fn is_effect(&self) -> bool {
        matches!(self, Self::SetSlot(..) | Self::SetAcc(..) | Self::Store(..) | Self::AddAt { .. } | Self::Check(_))
    }

    /// Whether it writes where an index says: positions have to take their turn.
    pub(super) fn scatters(&self) -> bool {
        matches!(self, Self::AddAt { .. } | Self::Store(_, _, Addressing::RowAt(_) | Addressing::OneByOneAt(_), _))
    }

    /// The access it makes.
    pub(super) fn access(&self) -> Option<AccessId> {
        match *self {
            Self::Load(access, ..) | Self::Store(access, ..) | Self::AddAt { access, .. } => Some(access),
            _ => None,
        }
    }
}

impl Addressing {
    fn operand(self) -> Option<V> {
        match self {
            Self::RowAt(v) | Self::SameAt(v) | Self::Steps(v) | Self::At(v) | Self::OneByOneAt(v) => Some(v),
            Self::Row | Self::Same | Self::Transposed(_) | Self::OneByOne => None,
        }
    }
}

/// The operations of a region.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) ops: Vec<VectorOp>,
    pub(super) kinds: Vec<Kind>,
    pub(super) invariant: Vec<bool>,
    /// The axis that the loop runs along.
    pub(super) axis: Option<AxisId>,
    /// The axis that copies of the body run along.
    pub(super) across: Option<AxisId>,
}

impl Region {
    pub(super) fn kind(&self, v: V) -> Kind {
        self.kinds[v.0 as usize]
    }

    /// Adds an operation; `moves` tells that it changes within the loop for reasons of its own.
    pub(super) fn add(&mut self, op: VectorOp, kind: Kind, moves: Moves) -> V {
        let mut invariant = moves == Moves::Never && !matches!(op, VectorOp::Acc(..) | VectorOp::Active);
        if op.is_effect() && !matches!(op, VectorOp::Check(_)) {
            invariant = false;
        }
        if let VectorOp::Index(axis) = op {
            invariant &= self.axis != Some(axis) && self.across != Some(axis);
        }
        op.each_operand(|v| invariant &= self.invariant[v.0 as usize]);
        if !op.is_effect() && !matches!(op, VectorOp::Acc(..)) && moves == Moves::Never {
            let known = self.ops.iter().zip(&self.kinds).position(|(o, k)| *o == op && *k == kind);
            if let Some(index) = known {
                return V(index as u32);
            }
        }
        self.ops.push(op);
        self.kinds.push(kind);
        self.invariant.push(invariant);
        V(self.ops.len() as u32 - 1)
    }

    pub(super) fn pure(&mut self, op: VectorOp, kind: Kind) -> V {
        self.add(op, kind, Moves::Never)
    }

    /// The same number in every lane.
    pub(super) fn float(&mut self, x: f64, ty: Type) -> V {
        match ty {
            Type::F64 => self.pure(VectorOp::Const(x.to_bits(), Kind::W64), Kind::W64),
            _ => self.pure(VectorOp::Const(u64::from((x as f32).to_bits()), Kind::W32), Kind::W32),
        }
    }

    /// The same integer in every lane.
    pub(super) fn int(&mut self, x: i64, kind: Kind) -> V {
        let bits = match kind {
            Kind::W32 => u64::from(x as u32),
            Kind::W64 => x as u64,
            Kind::Mask => u64::from(x != 0),
        };
        self.pure(VectorOp::Const(bits, kind), kind)
    }

    pub(super) fn alu(&mut self, alu: Alu, ty: Type, a: V, b: V) -> V {
        self.pure(VectorOp::Alu(alu, ty, a, b), Kind::of(ty))
    }

    pub(super) fn fma(&mut self, ty: Type, a: V, b: V, c: V) -> V {
        self.pure(VectorOp::Fma(ty, a, b, c), Kind::of(ty))
    }

    pub(super) fn fnma(&mut self, ty: Type, a: V, b: V, c: V) -> V {
        self.pure(VectorOp::Fnma(ty, a, b, c), Kind::of(ty))
    }

    pub(super) fn logic(&mut self, logic: Logic, a: V, b: V) -> V {
        let kind = self.kind(a);
        self.pure(VectorOp::Logic(logic, a, b), kind)
    }

    pub(super) fn shift(&mut self, shift: Shift, a: V, by: u32) -> V {
        let kind = self.kind(a);
        self.pure(VectorOp::Shift(shift, kind, a, by), kind)
    }

    pub(super) fn cmp(&mut self, cond: Cond, ty: Type, a: V, b: V) -> V {
        self.pure(VectorOp::Cmp(cond, ty, a, b), Kind::Mask)
    }

    pub(super) fn select(&mut self, mask: V, a: V, b: V) -> V {
        let kind = self.kind(a);
        if kind == Kind::Mask {
            let a = self.logic(Logic::And, mask, a);
            let b = self.logic(Logic::AndNot, mask, b);
            return self.logic(Logic::Or, a, b);
        }
        self.pure(VectorOp::Select(mask, a, b), kind)
    }

    pub(super) fn not(&mut self, mask: V) -> V {
        let all = self.int(-1, self.kind(mask));
        self.logic(Logic::Xor, mask, all)
    }

    pub(super) fn convert(&mut self, from: Type, to: Type, a: V) -> V {
        self.pure(VectorOp::Convert(from, to, a), Kind::of(to))
    }
}

/// Whether an operation changes within the loop for reasons of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    Never,
    Always,
}
