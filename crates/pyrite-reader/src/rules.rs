//! Binding rules: where PyTorch's Python functions differ from the operators they call.
//!
//! Another order of arguments, `inplace=True`, `reduction='mean'`: such functions are written in Python, in
//! `functional.py`, and evaluated here by the reader itself, with the caller's values as arguments. A rule has its own
//! scope; names of operators and a few functions that only rules can call ([`Forward::rule_function`]) are all that it
//! sees of the outside. A rule that needs an operator the registry lacks gives `None`, and the call stays opaque.

use std::sync::OnceLock;

use pyrite_ir::Value;
use pyrite_sym::SymInt;
use ruff_python_ast::{Expr, ModModule, Stmt, StmtFunctionDef};
use ruff_python_parser::{Parsed, parse_module};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use crate::expr::Operand;
use crate::forward::{Forward, Local, V};
use crate::literal;
use crate::overloads::SYNONYMS;
use crate::problems::{Failed, Res, codes};

/// The rules of `functional.py` by the dotted name of the function they are for.
pub(crate) fn rules() -> &'static FxHashMap<String, &'static StmtFunctionDef> {
    static PARSED: OnceLock<Parsed<ModModule>> = OnceLock::new();
    static RULES: OnceLock<FxHashMap<String, &'static StmtFunctionDef>> = OnceLock::new();
    let parsed = PARSED.get_or_init(|| parse_module(include_str!("functional.py")).expect("functional.py is Python"));
    RULES.get_or_init(|| {
        let mut table = FxHashMap::default();
        for stmt in &parsed.syntax().body {
            // A class gathers the functions of one module; its docstring is the module's name.
            let Stmt::ClassDef(class) = stmt else { continue };
            let mut prefixes = Vec::new();
            for member in &class.body {
                match member {
                    Stmt::Expr(expr) => {
                        prefixes.extend(literal::text(&expr.value).unwrap_or_default().split_whitespace());
                    }
                    Stmt::FunctionDef(function) => {
                        for prefix in &prefixes {
                            let dotted = format!("{prefix}.{}", function.name);
                            table.insert(dotted.trim_start_matches('.').to_owned(), function);
                        }
                    }
                    _ => {}
                }
            }
        }
        table
    })
}

impl<'a> Forward<'a> {
    /// The kind of a value, as rules ask for it.
    fn kind_name(&self, value: &V) -> &'static str {
        match value {
            Value::DType(_) => "dtype",
            Value::Device(_) => "device",
            Value::Str(_) => "str",
            Value::None => "none",
            Value::List(_) => "list",
            Value::Bool(_) => "bool",
            value => match self.operand(value) {
                Operand::Tensor | Operand::Unknown => "tensor",
                Operand::Number => "number",
                Operand::Other => "list",
            },
        }
    }

    /// The rule of a module of `torch.nn`; `None` when there is none.
    pub fn module_rule(
        &mut self,
        class: &str,
        args: Vec<V>,
        kwargs: Vec<(String, V)>,
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<Option<V>> {
        let path = format!("torch.nn.{class}");
        match rules().get(&path) {
            Some(rule) => self.rule(rule, &path, &args, &kwargs, want, at),
            None => Ok(None),
        }
    }

    /// Evaluates a rule of `functional.py`; `None` when an operator it needs is not there.
    pub fn rule(
        &mut self,
        rule: &'static StmtFunctionDef,
        path: &str,
        args: &[V],
        kwargs: &[(String, V)],
        want: Option<&str>,
        at: &impl Ranged,
    ) -> Res<Option<V>> {
        let mut scope: FxHashMap<&'a str, Local> = FxHashMap::default();
        let mut given = args.iter().cloned();
        let mut named = kwargs.to_vec();
        let parameters = &rule.parameters;
        for (parameter, keyword_only) in parameters
            .posonlyargs
            .iter()
            .chain(&parameters.args)
            .map(|p| (p, false))
            .chain(parameters.kwonlyargs.iter().map(|p| (p, true)))
        {
            let name = parameter.parameter.name.as_str();
            let by_name = named
                .iter()
                .position(|(key, _)| key == name || SYNONYMS.iter().any(|(from, to)| key == from && *to == name))
                .map(|index| named.remove(index).1);
            let value = match (if keyword_only { None } else { given.next() }, by_name) {
                (Some(value), None) | (None, Some(value)) => value,
                (None, None) => {
                    if let Some(default) = &parameter.default {
                        self.constant_default(default)?
                    } else {
                        let message = format!("{path} needs the argument `{name}`");
                        return self.fail(codes::WRONG_ARGUMENTS, at, message, "add it");
                    }
                }
                (Some(_), Some(_)) => {
                    let message = format!("{path} got multiple values for argument `{name}`");
                    return self.fail(codes::WRONG_ARGUMENTS, at, message, "give it once");
                }
            };
            scope.insert(name, Local::Value(value));
        }
        let rest: Vec<V> = given.collect();
        match &parameters.vararg {
            Some(variadic) => {
                let items = match rest.as_slice() {
                    [Value::List(items)] => items.clone(),
                    _ => rest,
                };
                scope.insert(variadic.name.as_str(), Local::Value(Value::List(items)));
            }
            None if !rest.is_empty() => {
                let message = format!("{path} was given {} arguments too many", rest.len());
                return self.fail(codes::WRONG_ARGUMENTS, at, message, "remove them");
            }
            None => {}
        }
        if let Some((key, _)) = named.first() {
            let message = format!("{path} has no argument `{key}`");
            return self.fail(codes::WRONG_ARGUMENTS, at, message, "remove it");
        }
        let outer = std::mem::replace(&mut self.locals, scope);
        let outer_callees = std::mem::take(&mut self.callees);
        let (was_rule, had_failed) =
            (std::mem::replace(&mut self.in_rule, true), std::mem::take(&mut self.rule_failed));
        let result = self.rule_body(rule, want);
        let missing = std::mem::replace(&mut self.rule_failed, had_failed);
        self.in_rule = was_rule;
        self.locals = outer;
        self.callees = outer_callees;
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Failed) if missing => {
                if self.in_rule {
                    self.rule_failed = true;
                    return Err(Failed);
                }
                Ok(None)
            }
            Err(Failed) => Err(Failed),
        }
    }

    /// The statements of a rule: names for parts, then the result.
    fn rule_body(&mut self, rule: &'static StmtFunctionDef, want: Option<&str>) -> Res<V> {
        for stmt in &rule.body {
            match stmt {
                Stmt::Assign(assign) => {
                    let [target] = assign.targets.as_slice() else { return Err(Failed) };
                    let value = self.eval(&assign.value, None)?;
                    self.bind_target(target, value)?;
                }
                Stmt::Return(stmt) => {
                    return stmt.value.as_deref().map_or(Ok(Value::None), |value| self.eval(value, want));
                }
                _ => return Err(Failed),
            }
        }
        Err(Failed)
    }

    /// The functions that only rules can call.
    pub fn rule_function(&mut self, name: &str, args: &[V], at: &impl Ranged) -> Option<Res<V>> {
        Some(match (name, args) {
            ("kind", [value]) => Ok(Value::from(self.kind_name(value))),
            ("known", [value]) => Ok((!matches!(value, Value::Tensor(_))).into()),
            ("rank", [Value::Tensor(id)]) => match self.meta(*id) {
                Some(Value::Tensor(meta)) => Ok(meta.rank().into()),
                _ => return None,
            },
            ("one_value_per", [Value::Str(unit), Value::Tensor(id), groups @ ..]) => match self.meta(*id) {
                Some(Value::Tensor(meta)) => Ok(one_value_per(unit, &meta.shape, groups).into()),
                _ => return None,
            },
            ("reduction_number", [Value::Str(name)]) => match &**name {
                "none" => Ok(0i64.into()),
                "mean" => Ok(1i64.into()),
                "sum" => Ok(2i64.into()),
                _ => return None,
            },
            ("sym_max" | "sym_min", [..]) => self.operator(name, args.to_vec(), None, at),
            ("parameter", _) => self.parameter(args, at),
            _ => return None,
        })
    }

    fn constant_default(&mut self, default: &'static Expr) -> Res<V> {
        let was = std::mem::replace(&mut self.in_rule, true);
        let value = self.eval(default, None);
        self.in_rule = was;
        value
    }
}

/// Whether a norm has statistics over a single value: per channel, per channel of one sample, or per group of channels.
fn one_value_per(unit: &str, shape: &[SymInt], groups: &[V]) -> bool {
    let space: SymInt = shape.iter().skip(2).fold(SymInt::Int(1), |product, size| product * size);
    let (samples, channels) = (shape.first(), shape.get(1));
    let values = match (unit, samples, channels, groups) {
        ("instance", ..) => space,
        ("channel", Some(samples), ..) => space * samples,
        ("group", Some(samples), Some(channels), [Value::Int(SymInt::Int(groups))]) if *groups > 0 => {
            space * samples * channels.floor_div(&SymInt::Int(*groups))
        }
        _ => return false,
    };
    values.hint() == Some(1)
}
