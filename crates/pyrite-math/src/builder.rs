//! Writes scalar code for functions of one precision.
//!
//! Operands are taken as the type that an operation works on: where a value has another type of the same size, its bits
//! are meant. So a sign is taken off a float by integers without saying so each time.

use pyrite_loops::{Binary, Block, Compare, Inst, Number, Shift, Type, Unary, Val};

/// Adds instructions to a block.
pub(crate) struct Builder<'a> {
    pub(crate) code: &'a mut Block,
    /// The floats.
    f: Type,
    /// The integers of the same size.
    i: Type,
}

impl<'a> Builder<'a> {
    /// For a floating-point type.
    pub(crate) fn new(code: &'a mut Block, f: Type) -> Self {
        Self { code, f, i: if f == Type::F64 { Type::I64 } else { Type::I32 } }
    }

    /// The bits of a value as a type.
    pub(crate) fn bits(&mut self, ty: Type, v: Val) -> Val {
        if self.code.ty(v) == ty { v } else { self.code.append(Inst::Bits(ty, v), ty) }
    }

    /// A float.
    pub(crate) fn c(&mut self, x: f64) -> Val {
        self.code.append(Inst::Const(Number::Float(x), self.f), self.f)
    }

    /// An integer.
    pub(crate) fn i(&mut self, x: i64) -> Val {
        self.code.append(Inst::Const(Number::Int(x), self.i), self.i)
    }

    /// An operation on two floats.
    pub(crate) fn float(&mut self, op: Binary, a: Val, b: Val) -> Val {
        let (a, b) = (self.bits(self.f, a), self.bits(self.f, b));
        self.code.append(Inst::Binary(op, a, b), self.f)
    }

    /// An operation on two integers.
    pub(crate) fn int(&mut self, op: Binary, a: Val, b: Val) -> Val {
        let (a, b) = (self.bits(self.i, a), self.bits(self.i, b));
        self.code.append(Inst::Binary(op, a, b), self.i)
    }

    /// An operation on bits, or on bool; it has the type of the first value.
    pub(crate) fn logic(&mut self, op: Binary, a: Val, b: Val) -> Val {
        let ty = self.code.ty(a);
        if ty == Type::Bool {
            return self.code.append(Inst::Binary(op, a, b), ty);
        }
        let result = self.int(op, a, b);
        self.bits(ty, result)
    }

    pub(crate) fn add(&mut self, a: Val, b: Val) -> Val {
        self.float(Binary::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: Val, b: Val) -> Val {
        self.float(Binary::Sub, a, b)
    }

    pub(crate) fn mul(&mut self, a: Val, b: Val) -> Val {
        self.float(Binary::Mul, a, b)
    }

    pub(crate) fn div(&mut self, a: Val, b: Val) -> Val {
        self.float(Binary::Div, a, b)
    }

    /// `a · b + c`, rounded once.
    pub(crate) fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        let (a, b, c) = (self.bits(self.f, a), self.bits(self.f, b), self.bits(self.f, c));
        self.code.append(Inst::Fma(a, b, c), self.f)
    }

    /// `c - a · b`, rounded once.
    pub(crate) fn fnma(&mut self, a: Val, b: Val, c: Val) -> Val {
        let (a, b, c) = (self.bits(self.f, a), self.bits(self.f, b), self.bits(self.f, c));
        self.code.append(Inst::Fnma(a, b, c), self.f)
    }

    /// A function that every target has.
    pub(crate) fn unary(&mut self, op: Unary, a: Val) -> Val {
        let a = self.bits(self.f, a);
        self.code.append(Inst::Unary(op, a), self.f)
    }

    pub(crate) fn abs(&mut self, x: Val) -> Val {
        self.unary(Unary::Abs, x)
    }

    pub(crate) fn nearest(&mut self, x: Val) -> Val {
        self.unary(Unary::Round, x)
    }

    pub(crate) fn sqrt(&mut self, x: Val) -> Val {
        self.unary(Unary::Sqrt, x)
    }

    /// The value between two numbers; NaN stays.
    pub(crate) fn clamp(&mut self, x: Val, low: f64, high: f64) -> Val {
        let (low, high) = (self.c(low), self.c(high));
        let x = self.float(Binary::Max, low, x);
        self.float(Binary::Min, high, x)
    }

    /// `y · 2ⁿ` for a whole `n`; see [`Binary::Scale`].
    pub(crate) fn scale(&mut self, y: Val, n: Val) -> Val {
        self.float(Binary::Scale, y, n)
    }

    /// A polynomial by its coefficients, the constant first.
    pub(crate) fn polynomial(&mut self, x: Val, coefficients: &[f64]) -> Val {
        let mut sum = self.c(coefficients[coefficients.len() - 1]);
        for c in coefficients.iter().rev().skip(1) {
            let c = self.c(*c);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    /// The bits of a value moved; an integer.
    pub(crate) fn shift(&mut self, shift: Shift, a: Val, by: u32) -> Val {
        let a = self.bits(self.i, a);
        self.code.append(Inst::Shift(shift, a, by), self.i)
    }

    /// A comparison of values as a type.
    pub(crate) fn cmp(&mut self, op: Compare, ty: Type, a: Val, b: Val) -> Val {
        let (a, b) = (self.bits(ty, a), self.bits(ty, b));
        self.code.append(Inst::Compare(op, a, b), Type::Bool)
    }

    /// Not the first, and the second.
    pub(crate) fn but_not(&mut self, a: Val, b: Val) -> Val {
        self.code.append(Inst::Compare(Compare::Lt, a, b), Type::Bool)
    }

    /// The first value where the mask is true, else the second; of the type of the first.
    pub(crate) fn select(&mut self, mask: Val, a: Val, b: Val) -> Val {
        let ty = self.code.ty(a);
        let b = self.bits(ty, b);
        self.code.append(Inst::Select(mask, a, b), ty)
    }

    /// The value in another type.
    pub(crate) fn cast(&mut self, to: Type, a: Val) -> Val {
        self.code.append(Inst::Cast(to, a), to)
    }

    /// A value with the sign of another: neither has it yet.
    pub(crate) fn signed_as(&mut self, y: Val, x: Val) -> Val {
        let sign_bit = self.c(-0.0);
        let sign = self.logic(Binary::And, x, sign_bit);
        self.logic(Binary::Or, y, sign)
    }

    /// What [`crate::slow_path`] computes where the mask is true, else a value.
    pub(crate) fn patch(&mut self, op: Unary, a: Val, mask: Val, value: Val) -> Val {
        self.code.append(Inst::Patch { op, a, mask, value }, self.f)
    }
}
