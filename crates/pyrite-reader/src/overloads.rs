//! The choice among the overloads of one name.
//!
//! Of a packet's overloads the first one is taken whose schema fits the kinds of the arguments; a number where a
//! tensor is wanted fits only if nothing else does, except for the operators that PyTorch treats otherwise.

use pyrite_ir::{Schema, Type, Value};
use ruff_text_size::Ranged;

use crate::expr::Operand;
use crate::forward::{Forward, V};
use crate::problems::{Failed, Res, codes};

/// Functions whose last parameter takes its items one by one: `x.view(2, 3)`.
const VARIADIC: [&str; 24] = [
    "view",
    "reshape",
    "expand",
    "permute",
    "repeat",
    "flip",
    "tile",
    "zeros",
    "ones",
    "empty",
    "rand",
    "randn",
    "new_zeros",
    "new_ones",
    "new_empty",
    "broadcast_to",
    "broadcast_tensors",
    "meshgrid",
    "einsum",
    "block_diag",
    "cartesian_prod",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
];

/// Operators to which PyTorch passes a number as a tensor even where there is an overload for numbers.
const NUMBERS_AS_TENSORS: [&str; 14] = [
    "aten.add",
    "aten.add_",
    "aten.sub",
    "aten.sub_",
    "aten.mul",
    "aten.mul_",
    "aten.div",
    "aten.div_",
    "aten.true_divide",
    "aten.floor_divide",
    "aten.floor_divide_",
    "aten.multiply",
    "aten.subtract",
    "aten.copy_",
];

/// Names that Python's functions give to parameters that a schema calls otherwise.
pub(crate) const SYNONYMS: [(&str, &str); 8] = [
    ("input", "self"),
    ("self", "input"),
    ("axis", "dim"),
    ("dim", "dims"),
    ("dims", "dim"),
    ("keepdims", "keepdim"),
    ("x", "self"),
    ("tensors", "self"),
];

impl Forward<'_> {
    /// Calls the overload of a packet that fits; `None` when none does.
    pub fn packet(
        &mut self,
        packet: &str,
        args: Vec<V>,
        kwargs: Vec<(String, V)>,
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<Option<V>> {
        let registry = self.cx.registry;
        let overloads = registry.overloads(packet);
        let numbers = NUMBERS_AS_TENSORS.contains(&packet);
        let strict = !numbers;
        let stem = packet.rsplit('.').next().unwrap_or_default();
        let tensor_first = overloads.iter().filter(|o| !strict && o.name().ends_with(".Tensor"));
        for op in tensor_first.chain(overloads) {
            let gathered = gather(stem, &op.schema, &args);
            let positional = gathered.as_ref().unwrap_or(&args);
            let renamed = rename(&op.schema, &kwargs);
            if self.fits_schema(&op.schema, positional, &renamed, strict) {
                let args = gathered.unwrap_or(args);
                return self.call_op(&op.clone(), args, renamed, want, at).map(Some);
            }
        }
        if let [only] = overloads
            && !self.in_rule
        {
            // With a single overload, what is wrong can be said.
            let renamed = rename(&only.schema, &kwargs);
            let given = only.schema.params.iter().zip(&args);
            let named =
                renamed.iter().filter_map(|(key, value)| Some((&only.schema.params[only.schema.param(key)?], value)));
            for (param, value) in given.chain(named) {
                if self.is_refused(&param.ty, value, numbers) {
                    let message = format!(
                        "{}: argument '{}' must be {}, not {}",
                        only.name(),
                        param.name,
                        param.ty,
                        value.kind()
                    );
                    return self.fail(codes::WRONG_ARGUMENTS, at, message, "PyTorch refuses this call too");
                }
            }
            return self.call_op(&only.clone(), args, renamed, want, at).map(Some);
        }
        if self.in_rule {
            self.rule_failed = true;
            return Err(Failed);
        }
        Ok(None)
    }

    /// Whether PyTorch's own functions refuse an argument that schemas let pass: a number for a tensor, a bool for an
    /// integer or the other way round, one integer for a list without a length.
    fn is_refused(&self, ty: &Type, value: &V, numbers: bool) -> bool {
        match (ty, value) {
            (Type::Optional(inner), value) => *value != Value::None && self.is_refused(inner, value, numbers),
            (Type::Tensor, value) => !numbers && self.operand(value) == Operand::Number,
            (Type::Int, Value::Bool(_)) | (Type::Bool | Type::List(_, None), Value::Int(_)) => true,
            _ => false,
        }
    }

    fn fits_schema(&self, schema: &Schema, args: &[V], kwargs: &[(String, V)], strict: bool) -> bool {
        let positional = schema.params.iter().filter(|p| !p.keyword_only).count();
        if args.len() > positional {
            return false;
        }
        for (key, value) in kwargs {
            match schema.param(key) {
                Some(index) if index >= args.len() => {
                    if !self.fits(&schema.params[index].ty, value, strict) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        let all_given = schema.params.iter().skip(args.len()).all(|p| {
            p.default.is_some()
                || (p.keyword_only && matches!(p.ty, Type::Optional(_)))
                || kwargs.iter().any(|(key, _)| **key == *p.name)
        });
        all_given && schema.params.iter().zip(args).all(|(param, value)| self.fits(&param.ty, value, strict))
    }

    fn fits(&self, ty: &Type, value: &V, strict: bool) -> bool {
        let operand = self.operand(value);
        match ty {
            Type::Any => true,
            Type::Optional(inner) => *value == Value::None || self.fits(inner, value, strict),
            Type::Tensor => {
                matches!(operand, Operand::Tensor | Operand::Unknown) || (!strict && operand == Operand::Number)
            }
            Type::Scalar => operand == Operand::Number,
            Type::Int => match value {
                Value::Int(_) => true,
                Value::Tensor(_) => matches!(operand, Operand::Unknown) || self.as_size(value).is_some(),
                _ => false,
            },
            Type::Float => operand == Operand::Number && !matches!(value, Value::Bool(_) | Value::Complex(_)),
            Type::Bool => {
                matches!(value, Value::Bool(_))
                    || matches!(value, Value::Tensor(id) if matches!(self.meta(*id), Some(Value::Bool(_))))
            }
            Type::Str => matches!(value, Value::Str(_)),
            Type::DType => matches!(value, Value::DType(_)),
            Type::Device => matches!(value, Value::Device(_) | Value::Str(_)),
            Type::Layout => matches!(value, Value::Layout(_)),
            Type::MemoryFormat => matches!(value, Value::MemoryFormat(_)),
            Type::Generator => *value == Value::None,
            Type::Graph => matches!(value, Value::Graph(_)),
            Type::List(item, length) => match value {
                Value::List(items) => items.iter().all(|v| self.fits(item, v, strict)),
                Value::Tensor(id) if **item == Type::Tensor => {
                    matches!(self.meta(*id), Some(Value::List(_)) | None)
                }
                value => length.is_some() && self.fits(item, value, strict),
            },
        }
    }
}

/// The arguments with the items of the last one in a list, where Python gives them one by one.
fn gather(stem: &str, schema: &Schema, args: &[V]) -> Option<Vec<V>> {
    if !VARIADIC.contains(&stem) {
        return None;
    }
    let place = schema.params.iter().position(|p| matches!(p.ty.required(), Type::List(..)))?;
    let rest = args.get(place..)?;
    if rest.is_empty() || matches!(rest, [Value::List(_)]) || rest.iter().any(|v| matches!(v, Value::List(_))) {
        return None;
    }
    let mut gathered = args[..place].to_vec();
    gathered.push(Value::List(rest.to_vec()));
    Some(gathered)
}

/// Arguments by the names that the schema has for them.
fn rename(schema: &Schema, kwargs: &[(String, V)]) -> Vec<(String, V)> {
    kwargs
        .iter()
        .map(|(key, value)| {
            if schema.param(key).is_none()
                && let Some((_, name)) = SYNONYMS.iter().find(|(from, to)| key == from && schema.param(to).is_some())
            {
                return ((*name).to_owned(), value.clone());
            }
            (key.clone(), value.clone())
        })
        .collect()
}
