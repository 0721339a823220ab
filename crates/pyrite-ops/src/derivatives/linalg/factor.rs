//! Derivatives of factorizations into triangular and unitary matrices.

use pyrite_ir::{Emit, Gradients, OpError, Pullback, args};

use super::{Diagonal, Sheet, Side, Term, Triangle, grad_of, matrix_grad, result};
use crate::derivatives::formula::Operand;

/// `linalg_cholesky_ex`: `L⁻ᴴ·sym(Lᴴ·G)·L⁻¹`, where `sym` mirrors the lower triangle and takes the mean.
pub fn cholesky_ex(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let upper = p.args.bool(1)?;
    let s = Sheet::new(e);
    let (l, g) = (result(&s, p, 0)?, s.grad(p));
    let (l, g) = if upper { (l.adjoint(), g.adjoint()) } else { (l, g) };
    let matrix = || {
        let lower = l.adjoint().mm(g).tril(0);
        let mean = (lower + lower.tril(-1).adjoint()) * 0.5;
        mean.solved(l.adjoint(), Triangle::Upper, Side::Left, Diagonal::Stored).solved(
            l,
            Triangle::Lower,
            Side::Right,
            Diagonal::Stored,
        )
    };
    s.gradients(p, &[(0, &matrix)])
}

/// The gradient of a Cholesky factor from half of that of the matrix it is the factor of.
fn factor_grad<'s>(half: Term<'s>, factor: Term<'s>, upper: bool) -> Term<'s> {
    let whole = half + half.adjoint();
    if upper { -factor.mm(whole) } else { -whole.mm(factor) }
}

/// `cholesky_inverse`.
pub fn cholesky_inverse(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let upper = p.args.bool(1)?;
    let s = Sheet::new(e);
    let (l, inverse) = (s.term(p.value(0)), result(&s, p, 0)?);
    s.gradients(p, &[(0, &|| factor_grad(inverse.mm(s.grad(p).mm(inverse)), l, upper))])
}

/// `cholesky_solve`.
pub fn cholesky_solve(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let upper = p.args.bool(2)?;
    let s = Sheet::new(e);
    let (l, x) = (s.term(p.value(1)), result(&s, p, 0)?);
    let rhs = s.grad(p).of("aten.cholesky_solve.default", args![p.value(1), upper]);
    s.gradients(p, &[(0, &|| rhs), (1, &|| factor_grad(rhs.mm(x.adjoint()), l, upper))])
}

/// The gradient of `A = P·L·U` from those of both factors.
fn plu<'s>(s: &'s Sheet<'_>, perm: Option<Term<'s>>, factors: [Term<'s>; 2], grads: [Option<Term<'s>>; 2]) -> Term<'s> {
    let ([l, u], [gl, gu]) = (factors, grads);
    let (m, n) = (l.size(2), u.size(1));
    let (gl, gu) = (gl.map(|g| g.tril(-1)), gu.map(|g| g.triu(0)));
    // What both say of `L⁻¹·dA·U⁻¹`, which is below the diagonal for one and on and above it for the other.
    let from_l = gl.map(|gl| l.adjoint().mm(gl));
    let from_u = gu.map(|gu| gu.mm(u.adjoint()));
    let by_u = |x: Term<'s>, u: Term<'s>| x.solved(u.adjoint(), Triangle::Lower, Side::Right, Diagonal::Stored);
    let by_l = |x: Term<'s>, l: Term<'s>| x.solved(l.adjoint(), Triangle::Upper, Side::Left, Diagonal::Ones);
    let nothing = || l.mm(u).zeros_like();
    let grad = if m.is_eq(&n) {
        let inner = Sheet::sum([from_l.map(|x| x.tril(-1)), from_u.map(|x| x.triu(0))]);
        inner.map(|x| by_l(by_u(x, u), l))
    } else if m.is_lt(&n) {
        let below = Sheet::sum([from_l, from_u.map(|x| -x)]).map(|x| by_u(x.tril(-1), u.first(-1i64, &m)));
        let square = Sheet::sum([below, gu.map(|gu| gu.first(-1i64, &m))]);
        square.map(|square| {
            let rest = gu.map_or_else(|| u.rest(-1i64, &m).zeros_like(), |gu| gu.rest(-1i64, &m));
            by_l(s.cat(&[square, rest], -1), l)
        })
    } else {
        let above = Sheet::sum([from_u, from_l.map(|x| -x)]).map(|x| by_l(x.triu(0), l.first(-2i64, &n)));
        let square = Sheet::sum([above, gl.map(|gl| gl.first(-2i64, &n))]);
        square.map(|square| {
            let rest = gl.map_or_else(|| l.rest(-2i64, &n).zeros_like(), |gl| gl.rest(-2i64, &n));
            by_u(s.cat(&[square, rest], -2), u)
        })
    };
    let grad = grad.unwrap_or_else(nothing);
    perm.map_or(grad, |perm| perm.mm(grad))
}

/// `linalg_lu`.
pub fn lu(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let pivot = p.args.bool(1)?;
    let s = Sheet::new(e);
    let [perm, l, u] = [result(&s, p, 0)?, result(&s, p, 1)?, result(&s, p, 2)?];
    let grads = [grad_of(&s, p, 1), grad_of(&s, p, 2)];
    s.gradients(p, &[(0, &|| plu(&s, pivot.then_some(perm), [l, u], grads))])
}

/// `linalg_lu_factor_ex`, both of whose factors are in one matrix.
pub fn lu_factor_ex(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let pivot = p.args.bool(1)?;
    let unpacked = e.many("aten.lu_unpack.default", args![p.result(0)?, p.result(1)?])?;
    let s = Sheet::new(e);
    let [perm, l, u] = [unpacked[0], unpacked[1], unpacked[2]].map(|h| s.term(h));
    let g = s.grad(p);
    let grads = [Some(g.first(-1i64, &l.size(1))), Some(g.first(-2i64, &u.size(2)))];
    s.gradients(p, &[(0, &|| plu(&s, pivot.then_some(perm), [l, u], grads))])
}

/// `lu_unpack`.
pub fn lu_unpack(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let s = Sheet::new(e);
    let both = s.term(p.value(0));
    let (rank, m, n) = (both.shape().len(), both.size(2), both.size(1));
    if !p.args.bool(2)? {
        return Ok(Vec::new());
    }
    let lower = grad_of(&s, p, 1).map(|g| g.tril(-1).padded(rank - 1, &n));
    let upper = grad_of(&s, p, 2).map(|g| g.triu(0).padded(rank - 2, &m));
    s.gradients(p, &[(0, &|| Sheet::sum([lower, upper]).unwrap_or_else(|| both.zeros_like()))])
}

/// `linalg_lu_solve`.
pub fn lu_solve(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let (left, adjoint) = (p.args.bool(3)?, p.args.bool(4)?);
    let side = Side::left(left);
    let unpacked = if p.wants(0) { e.many("aten.lu_unpack.default", args![p.value(0), p.value(1)])? } else { vec![] };
    let s = Sheet::new(e);
    let (g, x) = (s.grad(p), result(&s, p, 0)?);
    let rhs = s.call("aten.linalg_lu_solve.default", args![p.value(0), p.value(1), g.value(), left, !adjoint]);
    let factors = || {
        let [perm, l, u] = [unpacked[0], unpacked[1], unpacked[2]].map(|h| s.term(h));
        let of_matrix = matrix_grad(rhs, x, side);
        let of_matrix = if adjoint { of_matrix.adjoint() } else { of_matrix };
        let permuted = perm.adjoint().mm(of_matrix);
        permuted.mm(u.adjoint()).tril(-1) + l.adjoint().mm(permuted).triu(0)
    };
    s.gradients(p, &[(0, &factors), (2, &|| rhs)])
}

/// `linalg_qr`: for as many rows as columns or more,
/// `(G_Q + Q·sym(triu(G_R·Rᴴ - Qᴴ·G_Q)))·R⁻ᴴ`; the further columns of wide matrices are `Q` times those of `R`.
pub fn qr(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let shape = e.shape(p.tensor(0)?);
    let (m, n) = (&shape[shape.len() - 2], &shape[shape.len() - 1]);
    let mode = p.args.str(1)?;
    if mode == "r" || (mode == "complete" && n.is_lt(m)) {
        p.refuse(0)?;
    }
    let s = Sheet::new(e);
    let (a, q, r) = (s.term(p.value(0)), result(&s, p, 0)?, result(&s, p, 1)?);
    let (gq, gr) = (grad_of(&s, p, 0), grad_of(&s, p, 1));
    let matrix = || {
        if n.is_le(m) {
            return qr_tall(q, r, gq, gr);
        }
        let further = gr.map(|gr| gr.rest(-1i64, m));
        let from_further = further.map(|gr| a.rest(-1i64, m).mm(gr.adjoint()));
        let gr = gr.map(|gr| gr.first(-1i64, m));
        let square = qr_tall(q, r.first(-1i64, m), Sheet::sum([gq, from_further]), gr);
        let rest = further.map_or_else(|| a.rest(-1i64, m).zeros_like(), |gr| q.mm(gr));
        s.cat(&[square, rest], -1)
    };
    s.gradients(p, &[(0, &matrix)])
}

/// The rule of [`qr`] for matrices that are not wide.
fn qr_tall<'s>(q: Term<'s>, r: Term<'s>, gq: Option<Term<'s>>, gr: Option<Term<'s>>) -> Term<'s> {
    let inner = Sheet::sum([gr.map(|gr| gr.mm(r.adjoint())), gq.map(|gq| -q.adjoint().mm(gq))]);
    let inner = inner.unwrap_or_else(|| r.zeros_like()).triu(0);
    let outer = q.mm(inner + inner.adjoint() - real_part(inner.diagonal()).embed());
    let outer = gq.map_or(outer, |gq| gq + outer);
    outer.solved(r.adjoint(), Triangle::Lower, Side::Right, Diagonal::Stored)
}

/// The real part, in the type of the term.
fn real_part(x: Term<'_>) -> Term<'_> {
    if x.is_complex() { x.real().like(x) } else { x }
}
