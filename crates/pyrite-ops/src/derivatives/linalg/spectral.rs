//! Derivatives of eigenvalues, singular values and what is made of them.

use pyrite_ir::{Emit, Gradients, Handle, OpError, Pullback, args};

use super::{Sheet, Term, grad_of, result};

/// `x[j] - x[i]` in row `i` and column `j`, with ones on the diagonal.
fn gaps(x: Term<'_>) -> Term<'_> {
    x.as_row() - x.as_column() + x.ones_like().embed()
}

/// `_linalg_eigh`: `V·(diag(G_L) + skew(Vᴴ·G_V) / 2·gaps)·Vᴴ`, where `skew(X) = X - Xᴴ`.
pub fn eigh(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let computed = p.args.bool(2)?;
    let (values, vectors) = if computed {
        (p.result(0)?, p.result(1)?)
    } else {
        let found = e.many("aten._linalg_eigh.default", args![p.value(0), p.value(1), true])?;
        (found[0], found[1])
    };
    let s = Sheet::new(e);
    let (values, v) = (s.term(values), s.term(vectors));
    let (of_values, of_vectors) = (grad_of(&s, p, 0), grad_of(&s, p, 1).filter(|_| computed));
    let matrix = || {
        let turned = of_vectors.map(|g| v.adjoint().mm(g).skew() * 0.5 / gaps(values));
        match (of_values, turned) {
            (Some(g), None) => (v * g.like(v).as_row()).mm(v.adjoint()),
            (of_values, turned) => {
                let inner = Sheet::sum([of_values.map(|g| g.like(v).embed()), turned]);
                inner.map_or_else(|| v.zeros_like(), |inner| v.mm(inner).mm(v.adjoint()))
            }
        }
    };
    s.gradients(p, &[(0, &matrix)])
}

/// `_linalg_svd`.
///
/// With `E` the gaps of the squared values and `skew(X) = X - Xᴴ`, the part within the spaces of `U` and `V` is
/// `U·((skew(Uᴴ·G_U)·S + S·skew(Vᴴ·G_V)) / E + diag(G_S))·Vᴴ`; where there are more rows or columns than values, the
/// parts of `G_U` and `G_V` outside of these spaces are added, divided by the values.
pub fn svd(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let computed = p.args.bool(2)?;
    let [u, values, vh]: [Handle; 3] = if computed {
        [p.result(0)?, p.result(1)?, p.result(2)?]
    } else {
        let found = e.many("aten._linalg_svd.default", args![p.value(0), false, true])?;
        [found[0], found[1], found[2]]
    };
    let s = Sheet::new(e);
    let (u, values, vh) = (s.term(u), s.term(values), s.term(vh));
    let (m, n, k) = (u.size(2), vh.size(1), values.size(1));
    let (u, vh) = (u.first(-1i64, &k), vh.first(-2i64, &k));
    let gu = grad_of(&s, p, 0).filter(|_| computed).map(|g| g.first(-1i64, &k));
    let gvh = grad_of(&s, p, 2).filter(|_| computed).map(|g| g.first(-2i64, &k));
    let gs = grad_of(&s, p, 1).map(|g| g.like(u));
    let matrix = || {
        if let (Some(gs), None, None) = (gs, gu, gvh) {
            return (u * gs.as_row()).mm(vh);
        }
        let left = gu.map(|gu| u.adjoint().mm(gu).skew());
        let right = gvh.map(|gvh| vh.mm(gvh.adjoint()).skew());
        let turned = Sheet::sum([left.map(|x| x * values.as_row()), right.map(|x| x * values.as_column())]);
        let turned = turned.map(|x| x / gaps(values * values));
        let phase = left.filter(|x| x.is_complex()).map(|x| (x.diagonal() / (values * 2.0)).embed());
        let inner = Sheet::sum([turned, gs.map(Term::embed), phase]);
        let inside = inner.map(|inner| u.mm(inner).mm(vh));
        let below = gu.filter(|_| k.is_lt(&m)).map(|gu| {
            let scaled = gu / values.as_row();
            (scaled - u.mm(u.adjoint().mm(scaled))).mm(vh)
        });
        let beside = gvh.filter(|_| k.is_lt(&n)).map(|gvh| {
            let scaled = gvh / values.as_column();
            u.mm(scaled - scaled.mm(vh.adjoint()).mm(vh))
        });
        Sheet::sum([inside, below, beside]).unwrap_or_else(|| s.term(p.value(0)).zeros_like())
    };
    s.gradients(p, &[(0, &matrix)])
}

/// `linalg_pinv`, for matrices whose rank stays as it is.
pub fn pinv(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    p.refuse(1)?;
    p.refuse(2)?;
    let s = Sheet::new(e);
    let (a, inverse) = (s.term(p.value(0)), result(&s, p, 0)?);
    let (g, adjoint) = (s.grad(p).adjoint(), inverse.adjoint());
    let matrix = || {
        if a.size(2).is_le(a.size(1)) {
            let k = g.mm(inverse);
            let outer = k.mm(adjoint);
            let within = outer - a.mm(inverse).mm(outer) - inverse.mm(k).adjoint();
            within + adjoint.mm(inverse).mm(g - k.mm(a))
        } else {
            let k = inverse.mm(g);
            let outer = adjoint.mm(k);
            let within = outer - outer.mm(inverse).mm(a) - k.mm(inverse).adjoint();
            within + (g - a.mm(k)).mm(inverse).mm(adjoint)
        }
    };
    s.gradients(p, &[(0, &matrix)])
}

/// `X` of `H·X + X·H = B`, by the eigenvalues and vectors of a positive `H`.
fn sylvester<'s>(b: Term<'s>, values: Term<'s>, v: Term<'s>) -> Term<'s> {
    let inner = v.adjoint().mm(b).mm(v) / (values.as_row() + values.as_column());
    v.mm(inner).mm(v.adjoint())
}

/// `linalg_matrix_sqrth`.
pub fn matrix_sqrth(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let found = e.many("aten._linalg_eigh.default", args![p.result(0)?])?;
    let s = Sheet::new(e);
    let (values, v) = (s.term(found[0]), s.term(found[1]));
    let g = s.grad(p);
    s.gradients(p, &[(0, &|| sylvester((g + g.adjoint()) * 0.5, values, v))])
}

/// `linalg_polar`: `A = U·H` with a unitary `U` and a positive `H`.
pub fn polar(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Gradients, OpError> {
    let found = e.many("aten._linalg_eigh.default", args![p.result(1)?])?;
    let s = Sheet::new(e);
    let (u, h) = (result(&s, p, 0)?, result(&s, p, 1)?);
    let (values, v) = (s.term(found[0]), s.term(found[1]));
    let (gu, gh) = (grad_of(&s, p, 0), grad_of(&s, p, 1));
    let matrix = || {
        let turn = Sheet::sum([gu.map(|gu| u.adjoint().mm(gu)), gh.map(|gh| -gh.mm(h))]);
        let inner = Sheet::sum([turn.map(|turn| sylvester(turn, values, v).skew()), gh]);
        let inside = inner.map(|inner| u.mm(inner));
        let outside = gu.filter(|_| u.size(1).is_lt(u.size(2))).map(|gu| {
            let rest = gu - u.mm(u.adjoint().mm(gu));
            (rest.mm(v) / values.as_row()).mm(v.adjoint())
        });
        Sheet::sum([inside, outside]).unwrap_or_else(|| u.zeros_like())
    };
    s.gradients(p, &[(0, &matrix)])
}
