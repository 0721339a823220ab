//! The scalar code of a phase: instructions in order, each giving one value for one position.
//!
//! Values live in registers of few types ([`Type`]): a load widens what memory holds, a store narrows it. Numbers that
//! PyTorch computes in a narrow type and this code in a wide one are brought back by [`Inst::Wrap`].

use pyrite_tensor::DType;

use crate::{AccessId, AxisId, ResultId};

/// What a register holds for each position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Bool.
    Bool,
    /// 32-bit integers; narrower ones are widened.
    I32,
    /// 64-bit integers.
    I64,
    /// Single precision; half precisions are widened.
    F32,
    /// Double precision.
    F64,
}

impl Type {
    /// The register type that holds elements of a type; `None` for complex numbers and for types
    /// that have no arithmetic.
    pub fn of(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::Bool => Self::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 => Self::I32,
            DType::I64 => Self::I64,
            DType::F16 | DType::BF16 | DType::F32 => Self::F32,
            DType::F64 => Self::F64,
            DType::C64 | DType::C128 => return None,
            DType::U16 | DType::U32 | DType::U64 => return None,
            DType::F8E4M3 | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz => return None,
        })
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// How many bytes of a vector register one position takes.
    pub fn bytes(self) -> usize {
        match self {
            Self::I64 | Self::F64 => 8,
            Self::Bool | Self::I32 | Self::F32 => 4,
        }
    }
}

/// A value of a block, by the position of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Val(pub u32);

/// A literal.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer or a bool.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

/// Literals are equal when they are the same bits.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

/// A function of one value, of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unary {
    /// Negation.
    Neg,
    /// The absolute value.
    Abs,
    /// -1, 0 or 1; NaN gives 0.
    Sign,
    /// Not; every bit of an integer.
    Not,
    /// The square root.
    Sqrt,
    /// One over the square root, rounded twice.
    Rsqrt,
    /// The largest integer not above.
    Floor,
    /// The smallest integer not below.
    Ceil,
    /// The integer part.
    Trunc,
    /// The nearest integer, the even one of two.
    Round,
    /// e to the power.
    Exp,
    /// 2 to the power.
    Exp2,
    /// e to the power, less one.
    Expm1,
    /// The natural logarithm.
    Log,
    /// The logarithm to base 2.
    Log2,
    /// The logarithm to base 10.
    Log10,
    /// The natural logarithm of one plus the value.
    Log1p,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
    /// The arc sine.
    Asin,
    /// The arc cosine.
    Acos,
    /// The arc tangent.
    Atan,
    /// The hyperbolic sine.
    Sinh,
    /// The hyperbolic cosine.
    Cosh,
    /// The hyperbolic tangent.
    Tanh,
    /// The inverse hyperbolic sine.
    Asinh,
    /// The inverse hyperbolic cosine.
    Acosh,
    /// The inverse hyperbolic tangent.
    Atanh,
    /// The error function.
    Erf,
    /// One less the error function.
    Erfc,
}

impl Unary {
    /// Every function.
    pub const ALL: &[Self] = &[
        Self::Neg,
        Self::Abs,
        Self::Sign,
        Self::Not,
        Self::Sqrt,
        Self::Rsqrt,
        Self::Floor,
        Self::Ceil,
        Self::Trunc,
        Self::Round,
        Self::Exp,
        Self::Exp2,
        Self::Expm1,
        Self::Log,
        Self::Log2,
        Self::Log10,
        Self::Log1p,
        Self::Sin,
        Self::Cos,
        Self::Tan,
        Self::Asin,
        Self::Acos,
        Self::Atan,
        Self::Sinh,
        Self::Cosh,
        Self::Tanh,
        Self::Asinh,
        Self::Acosh,
        Self::Atanh,
        Self::Erf,
        Self::Erfc,
    ];
}

/// A function of two values of one type, which is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binary {
    /// Sum; integers wrap around.
    Add,
    /// Difference; integers wrap around.
    Sub,
    /// Product; integers wrap around.
    Mul,
    /// Quotient of floats.
    Div,
    /// The larger; NaN if one is.
    Max,
    /// The smaller; NaN if one is.
    Min,
    /// And, bit by bit.
    And,
    /// Or, bit by bit.
    Or,
    /// Exclusive or, bit by bit.
    Xor,
    /// A float to the power of another.
    Pow,
    /// The remainder of floats with the sign of the dividend.
    Fmod,
    /// The angle of the point (second, first).
    Atan2,
    /// Random bits: those at a position, the second, of a stream, the first; see `pyrite_tensor::random::stream`.
    Draw,
    /// A float times two to the power of a whole float, rounded once. The exponent is within twice the range of
    /// exponents of normal numbers.
    Scale,
    /// The 64-bit product of the low halves of 64-bit integers, without sign.
    MulLow,
    /// A 64-bit integer with its bits moved up, by 0 to 63.
    Shl,
    /// A 64-bit integer with its bits moved down, by 0 to 63; zeros follow.
    Shr,
}

impl Binary {
    /// Every function.
    pub const ALL: &[Self] = &[
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Max,
        Self::Min,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Pow,
        Self::Fmod,
        Self::Atan2,
        Self::Draw,
        Self::Scale,
        Self::MulLow,
        Self::Shl,
        Self::Shr,
    ];
}

/// A comparison of two values of one type; gives a bool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal; true for NaN.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Compare {
    /// Every comparison.
    pub const ALL: &[Self] = &[Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];
}

/// Which way bits are moved, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shift {
    /// Up; zeros follow.
    Left,
    /// Down; zeros follow.
    Right,
    /// Down; copies of the sign follow. Of 32-bit integers only.
    RightSigned,
}

impl Shift {
    /// Every shift.
    pub const ALL: &[Self] = &[Self::Left, Self::Right, Self::RightSigned];
}

/// Words that code looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The bits of 2/π behind the point, the first ones in the upper bits of the second word; the first word is zero.
    TwoOverPi,
}

impl Table {
    /// Every table.
    pub const ALL: &[Self] = &[Self::TwoOverPi];

    /// Its words.
    pub fn words(self) -> &'static [u64] {
        match self {
            Self::TwoOverPi => &TWO_OVER_PI,
        }
    }
}

#[rustfmt::skip]
const TWO_OVER_PI: [u64; 21] = [
    0x0000_0000_0000_0000, 0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561, 0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c, 0xfe1d_eb1c_b129_a73e, 0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41, 0x3991_d639_8353_39f4, 0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f, 0xef2f_118b_5a0a_6d1f, 0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d, 0x7527_bac7_ebe5_f17b, 0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08, 0x5603_3046_fc7b_6bab, 0xf0cf_bc20_9af4_361d,
];

/// What a scatter does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Replaces it; of several writes to one place the last counts.
    Set,
    /// Adds to it.
    Add,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inst {
    /// A literal.
    Const(Number, Type),
    /// The element at the present position, widened.
    Load(AccessId),
    /// The element `at` elements further, widened.
    Gather {
        /// Where from.
        access: AccessId,
        /// How many elements further, a 64-bit integer.
        at: Val,
    },
    /// Writes the element at the present position, narrowed to the buffer's type.
    Store {
        /// Where to.
        access: AccessId,
        /// What, of the buffer's register type.
        value: Val,
    },
    /// Writes the element `at` elements further; positions take their turn in order.
    Scatter {
        /// Where to.
        access: AccessId,
        /// How many elements further, a 64-bit integer.
        at: Val,
        /// What, of the buffer's register type.
        value: Val,
        /// What happens with what is there.
        write: Write,
    },
    /// The present index of an axis, a 64-bit integer.
    Index(AxisId),
    /// Which element the access is at, a 64-bit integer: a count of positions that goes along with whatever becomes of
    /// the axes. The element itself is not read. A kernel that is finished has none: it counts by [`Inst::Index`].
    Offset(AccessId),
    /// A 64-bit integer that is known when the kernel is called, by its place in [`crate::Kernel::numbers`].
    Size(u32),
    /// What an earlier phase of the row reduced.
    Result(ResultId),
    /// What this phase has reduced so far, at the positions before the present one. Positions take their turn in order.
    Before(ResultId),
    /// A function of one value.
    Unary(Unary, Val),
    /// A function of two values.
    Binary(Binary, Val, Val),
    /// The product of two floats, and a third added, rounded once.
    Fma(Val, Val, Val),
    /// A third float less the product of two, rounded once.
    Fnma(Val, Val, Val),
    /// An integer with its bits moved by a known number, less than it has.
    Shift(Shift, Val, u32),
    /// The same bits as another type of the same size; not bool.
    Bits(Type, Val),
    /// The word of a table at an index, a 64-bit integer.
    Table(Table, Val),
    /// A function of a float where the mask is true, else another value of its type. It is seldom true: what computes
    /// the function is out of the way of all else.
    Patch {
        /// The function.
        op: Unary,
        /// Its argument.
        a: Val,
        /// Where it counts.
        mask: Val,
        /// What counts elsewhere.
        value: Val,
    },
    /// A comparison.
    Compare(Compare, Val, Val),
    /// The second value where the first is true, else the third.
    Select(Val, Val, Val),
    /// The value in another type: floats become integers towards zero, bool becomes 0 or 1, numbers become true
    /// unless they are zero.
    Cast(Type, Val),
    /// The value as an element type can hold it: half precisions are rounded, narrow integers wrap around.
    Wrap(DType, Val),
    /// An index below an extent: a negative one counts from the end; the call fails if it is still out of bounds.
    Bounded {
        /// The index, a 64-bit integer.
        index: Val,
        /// The extent, a 64-bit integer.
        extent: Val,
    },
}

impl Inst {
    /// Tells of every value it uses.
    pub fn each_operand(&self, mut f: impl FnMut(Val)) {
        let _ = self.map_operands(&mut |v| {
            f(v);
            v
        });
    }

    /// The same with other operands.
    #[must_use]
    pub fn map_operands(&self, f: &mut dyn FnMut(Val) -> Val) -> Self {
        match *self {
            Self::Const(..)
            | Self::Load(_)
            | Self::Index(_)
            | Self::Offset(_)
            | Self::Size(_)
            | Self::Result(_)
            | Self::Before(_) => *self,
            Self::Gather { access, at } => Self::Gather { access, at: f(at) },
            Self::Store { access, value } => Self::Store { access, value: f(value) },
            Self::Scatter { access, at, value, write } => Self::Scatter { access, at: f(at), value: f(value), write },
            Self::Unary(op, a) => Self::Unary(op, f(a)),
            Self::Binary(op, a, b) => Self::Binary(op, f(a), f(b)),
            Self::Compare(op, a, b) => Self::Compare(op, f(a), f(b)),
            Self::Fma(a, b, c) => Self::Fma(f(a), f(b), f(c)),
            Self::Fnma(a, b, c) => Self::Fnma(f(a), f(b), f(c)),
            Self::Shift(shift, a, by) => Self::Shift(shift, f(a), by),
            Self::Bits(to, a) => Self::Bits(to, f(a)),
            Self::Table(table, at) => Self::Table(table, f(at)),
            Self::Patch { op, a, mask, value } => Self::Patch { op, a: f(a), mask: f(mask), value: f(value) },
            Self::Select(c, a, b) => Self::Select(f(c), f(a), f(b)),
            Self::Cast(to, a) => Self::Cast(to, f(a)),
            Self::Wrap(to, a) => Self::Wrap(to, f(a)),
            Self::Bounded { index, extent } => Self::Bounded { index: f(index), extent: f(extent) },
        }
    }

    /// The access it makes, if any.
    pub fn access(&self) -> Option<AccessId> {
        match *self {
            Self::Load(access)
            | Self::Offset(access)
            | Self::Gather { access, .. }
            | Self::Store { access, .. }
            | Self::Scatter { access, .. } => Some(access),
            _ => None,
        }
    }

    /// Whether it changes memory.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Scatter { .. })
    }
}

/// Instructions with the type of each value, in the order they run. Equal instructions that change nothing are written
/// down once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    insts: Vec<Inst>,
    types: Vec<Type>,
}

impl Block {
    /// The instructions.
    pub fn insts(&self) -> &[Inst] {
        &self.insts
    }

    /// The instructions with their values.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Val, &Inst)> + ExactSizeIterator {
        self.insts.iter().enumerate().map(|(i, inst)| (Val(i as u32), inst))
    }

    /// How a value is computed.
    pub fn inst(&self, value: Val) -> &Inst {
        &self.insts[value.0 as usize]
    }

    /// The type of a value. A store's is that of what it stores.
    pub fn ty(&self, value: Val) -> Type {
        self.types[value.0 as usize]
    }

    /// How many instructions there are.
    pub fn len(&self) -> usize {
        self.insts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.insts.is_empty()
    }

    /// Adds an instruction whose value has a type. What is there already is not computed twice; a load is not moved
    /// over a write.
    pub fn push(&mut self, inst: Inst, ty: Type) -> Val {
        let reads = matches!(inst, Inst::Load(_) | Inst::Gather { .. });
        if !inst.writes() {
            for (index, known) in self.insts.iter().enumerate().rev() {
                if *known == inst && self.types[index] == ty {
                    return Val(index as u32);
                }
                if reads && known.writes() {
                    break;
                }
            }
        }
        self.append(inst, ty)
    }

    /// Adds an instruction whose value has a type, whether or not it is there already.
    pub fn append(&mut self, inst: Inst, ty: Type) -> Val {
        self.insts.push(inst);
        self.types.push(ty);
        Val(self.insts.len() as u32 - 1)
    }

    /// A literal of a type.
    pub fn number(&mut self, value: f64, ty: Type) -> Val {
        let number = if ty.is_float() { Number::Float(value) } else { Number::Int(value as i64) };
        self.push(Inst::Const(number, ty), ty)
    }

    /// An integer literal of a type.
    pub fn integer(&mut self, value: i64, ty: Type) -> Val {
        let number = if ty.is_float() { Number::Float(value as f64) } else { Number::Int(value) };
        self.push(Inst::Const(number, ty), ty)
    }

    /// A function of one value.
    pub fn unary(&mut self, op: Unary, a: Val) -> Val {
        self.push(Inst::Unary(op, a), self.ty(a))
    }

    /// A function of two values of one type.
    pub fn binary(&mut self, op: Binary, a: Val, b: Val) -> Val {
        self.push(Inst::Binary(op, a, b), self.ty(a))
    }

    /// A comparison of two values of one type.
    pub fn compare(&mut self, op: Compare, a: Val, b: Val) -> Val {
        self.push(Inst::Compare(op, a, b), Type::Bool)
    }

    /// One of two values of one type.
    pub fn select(&mut self, condition: Val, a: Val, b: Val) -> Val {
        self.push(Inst::Select(condition, a, b), self.ty(a))
    }

    /// The value in another type.
    pub fn cast(&mut self, to: Type, a: Val) -> Val {
        if self.ty(a) == to { a } else { self.push(Inst::Cast(to, a), to) }
    }

    /// The value as an element type can hold it, in the register type of that.
    pub fn wrap(&mut self, to: DType, a: Val) -> Val {
        let a = Type::of(to).map_or(a, |ty| self.cast(ty, a));
        match to {
            DType::F16 | DType::BF16 | DType::U8 | DType::I8 | DType::I16 => self.push(Inst::Wrap(to, a), self.ty(a)),
            _ => a,
        }
    }
}
