//! Rules that read like formulas: derivatives and decompositions.
//!
//! A [`Sheet`] is an emitter to write formulas on: a [`Term`] is a tensor or a number on it, and the arithmetic of terms
//! calls operators at once. The first call that fails is remembered, what follows it is skipped, and the sheet
//! gives the error when it is asked for the gradients.
//!
//! Functions that are holomorphic and real on the real line commute with conjugation. Their gradients are those of the
//! real formula with conjugated operands, so terms come conjugated from [`Sheet::argument`] and [`Sheet::result`].
//! Nothing is emitted for a conjugation until the term is used, and never for real ones.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use pyrite_ir::{Emit, Gradients, Handle, Meta, OpError, Pullback, Value};
use pyrite_tensor::{DType, Scalar};

/// See the module's text.
pub struct Sheet<'e> {
    emitter: RefCell<&'e mut dyn Emit>,
    /// What terms stand for, by their number.
    entries: RefCell<Vec<Entry>>,
    /// The calls that were made and what they returned; a formula may say the same thing twice.
    calls: RefCell<Vec<(String, Vec<Value<Handle>>, usize)>>,
    failed: RefCell<Option<OpError>>,
}

#[derive(Clone, Debug)]
enum Entry {
    Plain(Value<Handle>),
    /// The conjugate of a complex tensor, not emitted yet.
    Conjugate(Handle),
}

/// A tensor or a number on a sheet.
#[derive(Clone, Copy)]
pub struct Term<'s> {
    sheet: &'s dyn Scribe,
    at: usize,
}

/// A sheet, whatever the lifetime of its emitter.
trait Scribe {
    /// Notes an entry and returns its number.
    fn note(&self, entry: Entry) -> usize;
    /// What a term stands for, with its conjugation emitted.
    fn read(&self, at: usize) -> Value<Handle>;
    /// What a term stands for.
    fn entry(&self, at: usize) -> Entry;
    /// Calls an operator with one result.
    fn call(&self, op: &str, args: &[Value<Handle>]) -> usize;
    fn meta(&self, handle: Handle) -> Meta;
}

impl<'e> Sheet<'e> {
    /// An empty sheet.
    pub fn new(emitter: &'e mut dyn Emit) -> Self {
        Self {
            emitter: RefCell::new(emitter),
            entries: RefCell::default(),
            calls: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// A tensor, a number, or an argument as it was given.
    pub fn term(&self, value: impl Into<Value<Handle>>) -> Term<'_> {
        Term { sheet: self, at: self.note(Entry::Plain(value.into())) }
    }

    /// An operator of any arguments, by its full name.
    pub fn call(&self, op: &str, args: &[Value<Handle>]) -> Term<'_> {
        Term { sheet: self, at: Scribe::call(self, op, args) }
    }

    /// An operator that gives something else each time it is called.
    pub fn call_anew(&self, op: &str, args: &[Value<Handle>]) -> Term<'_> {
        Term { sheet: self, at: self.made(op, args) }
    }

    /// An operator that is called for its effect and gives nothing.
    pub fn effect(&self, op: &str, args: &[Value<Handle>]) {
        if self.failed.borrow().is_none()
            && let Err(error) = self.emitter.borrow_mut().call(op, args)
        {
            *self.failed.borrow_mut() = Some(error);
        }
    }

    /// Calls an operator.
    fn made(&self, op: &str, args: &[Value<Handle>]) -> usize {
        let value = if self.failed.borrow().is_some() {
            Value::None
        } else {
            self.emitter.borrow_mut().one(op, args).map_or_else(
                |error| {
                    *self.failed.borrow_mut() = Some(error);
                    Value::None
                },
                Value::from,
            )
        };
        self.note(Entry::Plain(value))
    }

    /// The gradient of the first result.
    pub fn grad(&self, p: &Pullback<'_>) -> Term<'_> {
        self.try_term(p.grad().map(Value::from))
    }

    /// An argument, conjugated.
    pub fn argument(&self, p: &Pullback<'_>, index: usize) -> Term<'_> {
        self.term(p.value(index)).conj()
    }

    /// A result, conjugated.
    pub fn result(&self, p: &Pullback<'_>, index: usize) -> Term<'_> {
        self.try_term(p.result(index).map(Value::from)).conj()
    }

    /// Terms as the results of a decomposition; nothing in the place of a result that is not wanted.
    pub fn results<'s>(&'s self, terms: &[Option<Term<'s>>]) -> Result<Value<Handle>, OpError> {
        let found = terms.iter().map(|term| term.map_or(Value::None, Term::read)).collect();
        self.failed.take().map_or(Ok(Value::List(found)), Err)
    }

    /// A term as the result of a decomposition.
    pub fn result_of<'s>(&'s self, term: Term<'s>) -> Result<Value<Handle>, OpError> {
        let found = term.read();
        self.failed.take().map_or(Ok(found), Err)
    }

    fn try_term(&self, value: Result<Value<Handle>, OpError>) -> Term<'_> {
        self.term(value.unwrap_or_else(|error| {
            self.failed.borrow_mut().get_or_insert(error);
            Value::None
        }))
    }

    /// The gradients of arguments; those that are not wanted are left out before they are computed.
    pub fn gradients<'s>(
        &'s self,
        p: &Pullback<'_>,
        terms: &[(usize, &dyn Fn() -> Term<'s>)],
    ) -> Result<Gradients, OpError> {
        let mut found = Vec::new();
        for (index, term) in terms {
            if p.wants(*index) {
                found.push((*index, self.read(term().at)));
            }
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// The gradients of arguments that were computed already; those that are not wanted are left out.
    pub fn found(&self, p: &Pullback<'_>, terms: &[(usize, Term<'_>)]) -> Result<Gradients, OpError> {
        let found = terms.iter().filter(|(index, _)| p.wants(*index));
        let found = found.map(|(index, term)| (*index, self.read(term.at))).collect();
        self.failed.take().map_or(Ok(found), Err)
    }
}

impl Scribe for Sheet<'_> {
    fn note(&self, entry: Entry) -> usize {
        let mut entries = self.entries.borrow_mut();
        entries.push(entry);
        entries.len() - 1
    }

    fn entry(&self, at: usize) -> Entry {
        self.entries.borrow()[at].clone()
    }

    fn read(&self, at: usize) -> Value<Handle> {
        match self.entry(at) {
            Entry::Plain(value) => value,
            Entry::Conjugate(handle) => {
                let conjugated = Scribe::call(self, "aten._conj.default", &[handle.into()]);
                let value = self.read(conjugated);
                // The next reader finds it emitted.
                self.entries.borrow_mut()[at] = Entry::Plain(value.clone());
                value
            }
        }
    }

    fn call(&self, op: &str, args: &[Value<Handle>]) -> usize {
        if let Some(made) = self.calls.borrow().iter().find(|made| made.0 == op && made.1 == args) {
            return made.2;
        }
        let at = self.made(op, args);
        self.calls.borrow_mut().push((op.to_owned(), args.to_vec(), at));
        at
    }

    fn meta(&self, handle: Handle) -> Meta {
        self.emitter.borrow().meta(handle).clone()
    }
}

/// Functions of one term, by the names of their operators.
macro_rules! unary_operators {
    ($($name:ident)*) => {
        #[expect(missing_docs, reason = "each is the ATen operator of the same name")]
        impl<'s> Term<'s> {
            $(#[must_use] pub fn $name(self) -> Self { self.of(concat!("aten.", stringify!($name), ".default"), &[]) })*
        }
    };
}

unary_operators! {
    abs any ceil cos cosh digamma erf exp exp2 expm1 floor i0 imag isinf isnan lgamma log log1p logical_not ones_like real reciprocal rsqrt sgn sigmoid sign
    sin sinh softplus special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_erfcx special_i0e
    special_i1 special_i1e special_modified_bessel_k0 special_modified_bessel_k1 sqrt tanh trunc zeros_like
}

/// Comparisons with a tensor or a number, by the names of their operators and of those with exchanged operands.
macro_rules! comparisons {
    ($($name:ident $flipped:ident)*) => {
        #[expect(missing_docs, reason = "each is the ATen operator of the same name")]
        impl<'s> Term<'s> {
            $(
                #[must_use]
                pub fn $name(self, other: impl Operand<'s>) -> Self {
                    self.compare(stringify!($name), stringify!($flipped), other.value())
                }
            )*
        }
    };
}

comparisons! { eq eq  ne ne  lt gt  le ge  gt lt  ge le }

impl<'s> Term<'s> {
    fn on(self, at: usize) -> Self {
        Self { at, ..self }
    }

    fn read(self) -> Value<Handle> {
        self.sheet.read(self.at)
    }

    /// An operator of this term and further arguments, by its full name.
    #[must_use]
    pub fn of(self, op: &str, rest: &[Value<Handle>]) -> Self {
        let mut args = vec![self.read()];
        args.extend_from_slice(rest);
        self.on(self.sheet.call(op, &args))
    }

    /// An operator of two tensors, by its full name.
    #[must_use]
    pub fn with(self, op: &str, other: impl Operand<'s>) -> Self {
        self.of(op, &[other.value()])
    }

    fn compare(self, name: &str, flipped: &str, other: Value<Handle>) -> Self {
        let (op, args) = match (self.read(), other) {
            (one, other @ Value::Tensor(_)) if one.as_tensor().is_none() => {
                (format!("aten.{flipped}.Scalar"), [other, one])
            }
            (one, other @ Value::Tensor(_)) => (format!("aten.{name}.Tensor"), [one, other]),
            (one, number) => (format!("aten.{name}.Scalar"), [one, number]),
        };
        self.on(self.sheet.call(&op, &args))
    }

    /// The complex conjugate.
    #[must_use]
    pub fn conj(self) -> Self {
        let entry = match self.sheet.entry(self.at) {
            Entry::Conjugate(handle) => Entry::Plain(handle.into()),
            Entry::Plain(Value::Tensor(handle)) if self.sheet.meta(handle).dtype.is_complex() => {
                Entry::Conjugate(handle)
            }
            Entry::Plain(Value::Complex(number)) => Entry::Plain(Value::Complex(number.conj())),
            real @ Entry::Plain(_) => real,
        };
        self.on(self.sheet.note(entry))
    }

    /// The number it is; nothing for tensors and symbolic numbers.
    #[must_use]
    pub fn number(self) -> Option<Scalar> {
        match self.sheet.entry(self.at) {
            Entry::Plain(value) => value.as_scalar(),
            Entry::Conjugate(_) => None,
        }
    }

    /// Its element type, if it is a tensor.
    #[must_use]
    pub fn dtype(self) -> Option<DType> {
        self.meta().map(|meta| meta.dtype)
    }

    /// What is known of it, if it is a tensor.
    #[must_use]
    pub fn meta(self) -> Option<Meta> {
        match self.sheet.entry(self.at) {
            Entry::Plain(Value::Tensor(handle)) | Entry::Conjugate(handle) => Some(self.sheet.meta(handle)),
            Entry::Plain(_) => None,
        }
    }

    /// Whether it is a tensor and not a number.
    #[must_use]
    pub fn is_tensor(self) -> bool {
        self.dtype().is_some()
    }

    /// Whether it is a complex tensor.
    #[must_use]
    pub fn is_complex(self) -> bool {
        self.dtype().is_some_and(DType::is_complex)
    }

    /// Whether it is an argument that was not given.
    #[must_use]
    pub fn is_none(self) -> bool {
        matches!(self.sheet.entry(self.at), Entry::Plain(Value::None))
    }

    /// In the element type of another term; numbers have none.
    #[must_use]
    pub fn like(self, other: Self) -> Self {
        match (self.dtype(), other.dtype()) {
            (Some(from), Some(to)) if from != to => self.of("aten._to_copy.default", &[to.into()]),
            _ => self,
        }
    }

    /// To a power.
    #[must_use]
    pub fn pow(self, exponent: impl Operand<'s>) -> Self {
        let exponent = exponent.value();
        match (self.read(), &exponent) {
            (Value::Tensor(_), Value::Tensor(_)) => self.of("aten.pow.Tensor_Tensor", &[exponent]),
            (Value::Tensor(_), _) => self.of("aten.pow.Tensor_Scalar", &[exponent]),
            _ => self.of("aten.pow.Scalar", &[exponent]),
        }
    }

    /// The product with itself.
    #[must_use]
    pub fn square(self) -> Self {
        self * self
    }

    /// `and` of two masks.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.with("aten.logical_and.default", other)
    }

    /// `or` of two masks.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.with("aten.logical_or.default", other)
    }

    /// The first where this mask holds, else the second.
    #[must_use]
    pub fn select(self, yes: impl Operand<'s>, no: impl Operand<'s>) -> Self {
        let (yes, no) = (yes.value(), no.value());
        let op = match (&yes, &no) {
            (Value::Tensor(_), Value::Tensor(_)) => "aten.where.self",
            (Value::Tensor(_), _) => "aten.where.ScalarOther",
            (_, Value::Tensor(_)) => "aten.where.ScalarSelf",
            _ => "aten.where.Scalar",
        };
        self.of(op, &[yes, no])
    }

    /// This where a mask holds, else zero.
    #[must_use]
    pub fn only(self, mask: Self) -> Self {
        mask.select(self, 0.0)
    }

    /// This where a mask does not hold, else zero.
    #[must_use]
    pub fn except(self, mask: Self) -> Self {
        mask.select(0.0, self)
    }

    fn is(self, number: f64) -> bool {
        matches!(self.number(), Some(Scalar::Int(_) | Scalar::Float(_)))
            && self.number().is_some_and(|n| n.to_f64() == number)
    }
}

/// What stands beside a term: another term or a number.
pub trait Operand<'s> {
    /// As an argument of an operator.
    fn value(self) -> Value<Handle>;
}

impl<'s> Operand<'s> for Term<'s> {
    fn value(self) -> Value<Handle> {
        self.read()
    }
}

impl Operand<'_> for f64 {
    fn value(self) -> Value<Handle> {
        Value::Float(self)
    }
}

impl Operand<'_> for Value<Handle> {
    fn value(self) -> Value<Handle> {
        self
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident)*) => {$(
        impl<'s> $trait<f64> for Term<'s> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                let other = self.on(self.sheet.note(Entry::Plain(other.into())));
                $trait::$method(self, other)
            }
        }
        impl<'s> $trait<Term<'s>> for f64 {
            type Output = Term<'s>;
            fn $method(self, other: Term<'s>) -> Term<'s> {
                let number = other.on(other.sheet.note(Entry::Plain(self.into())));
                $trait::$method(number, other)
            }
        }
    )*};
}

arithmetic! { Add add  Sub sub  Mul mul  Div div }

impl Add for Term<'_> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.with("aten.add.Tensor", other)
    }
}

impl Sub for Term<'_> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.with("aten.sub.Tensor", other)
    }
}

/// A product with the number one is the other factor.
impl Mul for Term<'_> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        match (self.is(1.0), other.is(1.0)) {
            (true, _) => other,
            (_, true) => self,
            _ => self.with("aten.mul.Tensor", other),
        }
    }
}

impl Div for Term<'_> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        if other.is(1.0) { self } else { self.with("aten.div.Tensor", other) }
    }
}

impl Neg for Term<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.of("aten.neg.default", &[])
    }
}
