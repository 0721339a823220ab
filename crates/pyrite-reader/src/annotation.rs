//! What FX writes behind a name: `"f32[4, 3][3, 1]cpu"`, `"Sym(s0 + 1)"`.

use pyrite_ir::{Device, Meta, SymDims, Value};
use pyrite_sym::{Expr, SymEnv, SymInt};
use pyrite_tensor::DType;

use crate::ReadOptions;

/// Why an annotation cannot be used.
#[derive(Debug)]
pub(crate) enum BadAnnotation {
    /// There is no such data type.
    DType(String),
    /// A size or stride cannot be read.
    Size(String),
    /// It has another form.
    Form,
}

/// What an annotation says.
#[derive(Clone, Debug)]
pub(crate) struct Annotated {
    /// The value.
    pub value: Value<Meta>,
    /// Whether it says the strides; where it does not, they are taken to be dense.
    pub has_stride: bool,
}

/// The symbols of a program with the values that are known for them.
pub(crate) struct Symbols<'a> {
    /// Where they are kept.
    pub env: &'a SymEnv,
    /// Values from the text.
    pub hints: &'a [(String, i64)],
    /// Values from the caller.
    pub options: &'a ReadOptions,
}

impl Symbols<'_> {
    /// The size that an expression stands for; its symbols are made known.
    pub fn size(&self, text: &str) -> Option<SymInt> {
        let text = text.trim();
        if let Ok(value) = text.parse::<i64>() {
            return Some(SymInt::Int(value));
        }
        let expr = Expr::parse(text).ok()?;
        for name in expr.symbols() {
            self.declare(&name);
        }
        Some(self.env.wrap(expr))
    }

    /// Makes a symbol known.
    pub fn declare(&self, name: &str) -> SymInt {
        let hint = self
            .hints
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| *v)
            .or_else(|| self.options.hints.get(name).copied());
        // Sizes that were 0 or 1 at capture are not symbolic in PyTorch, so a symbol means 2 and more.
        let low = if name.starts_with('s') { hint.unwrap_or(2).min(2) } else { hint.unwrap_or(0).min(0) };
        self.env.named(name, hint, low)
    }
}

/// Reads an annotation.
pub(crate) fn parse(text: &str, symbols: &Symbols<'_>) -> Result<Annotated, BadAnnotation> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix("Sym(").and_then(|rest| rest.strip_suffix(')')) {
        let size = symbols.size(inner).ok_or_else(|| BadAnnotation::Size(inner.to_owned()))?;
        return Ok(Annotated { value: Value::Int(size), has_stride: true });
    }
    let open = text.find('[').ok_or(BadAnnotation::Form)?;
    let name = &text[..open];
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(BadAnnotation::Form);
    }
    let dtype = DType::from_abbr(name).ok_or_else(|| BadAnnotation::DType(name.to_owned()))?;
    let (shape, rest) = dims(&text[open..], symbols)?;
    let (stride, rest) = if rest.starts_with('[') {
        let (stride, rest) = dims(rest, symbols)?;
        (Some(stride), rest)
    } else {
        (None, rest)
    };
    if stride.as_ref().is_some_and(|s| s.len() != shape.len()) {
        return Err(BadAnnotation::Form);
    }
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_')) {
        return Err(BadAnnotation::Form);
    }
    let has_stride = stride.is_some();
    let mut meta = match stride {
        Some(stride) => Meta::strided(&shape, &stride, dtype),
        None => Meta::contiguous(&shape, dtype),
    };
    if !rest.is_empty() {
        meta.device = Device::from_name(rest);
    }
    Ok(Annotated { value: Value::Tensor(meta), has_stride })
}

/// `[4, s0*(s1 + 1)]` and what follows it.
fn dims<'t>(text: &'t str, symbols: &Symbols<'_>) -> Result<(SymDims, &'t str), BadAnnotation> {
    let mut sizes = SymDims::new();
    let mut depth = 0usize;
    let mut start = 1;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' | b']' if depth == 0 => {
                let part = text[start..at].trim();
                if !(part.is_empty() && byte == b']') {
                    let size = symbols.size(part).ok_or_else(|| BadAnnotation::Size(part.to_owned()))?;
                    if size.as_int().is_some_and(|v| v < 0) {
                        return Err(BadAnnotation::Size(part.to_owned()));
                    }
                    sizes.push(size);
                }
                start = at + 1;
                if byte == b']' {
                    return Ok((sizes, &text[start..]));
                }
            }
            _ => {}
        }
    }
    Err(BadAnnotation::Form)
}
