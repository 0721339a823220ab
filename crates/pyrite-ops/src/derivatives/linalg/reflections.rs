//! Derivatives of products of Householder reflections `Hᵢ = I - τᵢ·vᵢ·vᵢᴴ`.
//!
//! The reflections are applied one after the other, so the rule needs to know how many there are.

use pyrite_ir::{Emit, Gradients, OpError, Pullback, args, unsupported};
use pyrite_sym::SymInt;

use super::{Sheet, Term};

/// The reflections of a call: unit lower columns and factors.
struct Reflections<'s> {
    vectors: Vec<Term<'s>>,
    taus: Vec<Term<'s>>,
}

/// In which order reflections are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The last one first, as in the product.
    Product,
    /// The first one first, each adjoint, as in the adjoint of the product.
    Adjoint,
}

/// Gradients of the vectors (a matrix), of the factors and of what was reflected.
struct Reflected<'s> {
    vectors: Term<'s>,
    taus: Term<'s>,
    operand: Term<'s>,
}

impl<'s> Reflections<'s> {
    fn new(s: &'s Sheet<'_>, input: Term<'s>, tau: Term<'s>) -> Result<Self, OpError> {
        let Some(count) = tau.size(1).as_int() else {
            unsupported!("the derivative of a product of so many reflections as a symbol says");
        };
        let (rows, cols) = (input.size(2), SymInt::Int(count));
        let ones = s.call("aten.eye.m", args![rows, cols.clone(), input.dtype().unwrap_or(pyrite_tensor::DType::F64)]);
        let columns = input.first(-1i64, &cols).tril(-1) + ones;
        let one = |x: Term<'s>, i: i64| x.part(-1i64, &SymInt::Int(i), &SymInt::Int(i + 1));
        Ok(Self {
            vectors: (0..count).map(|i| one(columns, i)).collect(),
            taus: (0..count).map(|i| one(tau, i).as_column()).collect(),
        })
    }

    /// The gradients where the result of reflecting `operand` has the gradient `grad`.
    fn backward(&self, s: &'s Sheet<'_>, order: Order, operand: Term<'s>, grad: Term<'s>) -> Reflected<'s> {
        let count = self.taus.len();
        let steps: Vec<usize> = if order == Order::Product { (0..count).rev().collect() } else { (0..count).collect() };
        let tau = |i: usize| if order == Order::Product { self.taus[i] } else { self.taus[i].conj() };
        // What each step was applied to.
        let mut states = vec![operand];
        for (at, &i) in steps.iter().enumerate() {
            let (v, x) = (self.vectors[i], states[at]);
            states.push(x - v.mm(tau(i) * v.adjoint().mm(x)));
        }
        let (mut vectors, mut taus) = (self.vectors.clone(), self.taus.clone());
        let mut g = grad;
        for (&i, x) in steps.iter().zip(&states).rev() {
            let v = self.vectors[i];
            let (row, grad_row) = (v.adjoint().mm(*x), v.adjoint().mm(g));
            let of_row = -(tau(i).conj() * grad_row);
            let of_tau = -grad_row.mm(row.adjoint());
            taus[i] = if order == Order::Product { of_tau } else { of_tau.conj() };
            vectors[i] = x.mm(of_row.adjoint()) - tau(i).conj() * g.mm(row.adjoint());
            g = g + v.mm(of_row);
        }
        let taus = s.cat(&taus, -1);
        Reflected { vectors: s.cat(&vectors, -1).tril(-1), taus: taus.squeeze(taus.rank() - 2), operand: g }
    }
}

/// `linalg_householder_product`.
pub fn householder_product(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let (input, tau, g) = (s.term(p.value(0)), s.term(p.value(1)), s.grad(p));
    if tau.size(1).is_eq(0) {
        return s.gradients(p, &[(0, &|| input.zeros_like()), (1, &|| tau.zeros_like())]);
    }
    let reflections = Reflections::new(&s, input, tau)?;
    let dtype = input.dtype().unwrap_or(pyrite_tensor::DType::F64);
    let ones = s.call("aten.eye.m", args![input.size(2), input.size(1), dtype]);
    let back = reflections.backward(&s, Order::Product, ones, g);
    let last = input.shape().len() - 1;
    s.gradients(p, &[(0, &|| back.vectors.padded(last, &input.size(1))), (1, &|| back.taus)])
}

/// `ormqr`: a product from the right is the adjoint of one from the left.
pub fn ormqr(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (left, transposed) = (p.args.bool(3)?, p.args.bool(4)?);
    let s = Sheet::new(e);
    let [input, tau, other] = [0, 1, 2].map(|i| s.term(p.value(i)));
    let g = s.grad(p);
    if tau.size(1).is_eq(0) {
        return s.gradients(p, &[(0, &|| input.zeros_like()), (1, &|| tau.zeros_like()), (2, &|| g)]);
    }
    let reflections = Reflections::new(&s, input, tau)?;
    let order = if transposed == left { Order::Adjoint } else { Order::Product };
    let back = reflections.backward(&s, order, turned(other, left), turned(g, left));
    let last = input.shape().len() - 1;
    let vectors = || back.vectors.padded(last, &input.size(1));
    s.gradients(p, &[(0, &vectors), (1, &|| back.taus), (2, &|| turned(back.operand, left))])
}

/// Itself for a product from the left, else its adjoint.
fn turned(x: Term<'_>, left: bool) -> Term<'_> {
    if left { x } else { x.adjoint() }
}
