//! One operator, one record.
//!
//! An [`OpDef`] is written as a constant: its schema and doc, then one rule for each thing that can be done with the
//! operator. A rule that is absent is a variant that says why. [`Registry`] collects the records and reads their
//! schemas.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use pyrite_tensor::Tensor;
use pyrite_tensor::random::TorchGenerator;

use crate::schema::SchemaError;
use crate::{Args, Emit, Gradients, Handle, Lowering, Meta, OpError, Pullback, Schema, Value};

/// Shape, stride, type and aliasing of the results from those of the arguments.
pub type InferFn = fn(&Args<'_, Meta>) -> Result<Value<Meta>, OpError>;
/// The results of a call.
pub type KernelFn = fn(&Call<'_>) -> Result<Value<Tensor>, OpError>;
/// The results of a call by other operators.
pub type DecomposeFn = fn(&mut dyn Emit, &Args<'_, Handle>) -> Result<Value<Handle>, OpError>;
/// The results of a call by random numbers of the fast stream, given what inference says of them.
pub type StreamFn = fn(&mut dyn Emit, &Args<'_, Handle>, &Value<Meta>) -> Result<Value<Handle>, OpError>;
/// The gradients of a call's arguments from those of its results.
pub type VjpFn = fn(&mut dyn Emit, &Pullback<'_>) -> Result<Gradients, OpError>;

/// A call as kernels of the loop IR.
pub type LowerFn = fn(&mut Lowering<'_>) -> Result<(), OpError>;

/// How metadata is inferred.
#[derive(Clone, Copy, Debug)]
pub enum Infer {
    /// By a rule of its own.
    Rule(InferFn),
    /// By inferring through its decomposition.
    ViaDecomposition,
    /// The written arguments are the results.
    Written,
    /// By inferring its nested graphs; done by whoever holds the graph.
    HigherOrder,
}

/// How results are computed.
#[derive(Clone, Copy, Debug)]
pub enum Eval {
    /// By a kernel.
    Kernel(KernelFn),
    /// The results are views of the argument they alias, as inference describes them.
    View,
    /// By running its decomposition.
    ViaDecomposition,
    /// By running the named functional operator and copying its results into the written arguments.
    WriteBack(&'static str),
    /// By running its nested graphs; done by the interpreter.
    HigherOrder,
}

/// How it is expressed by simpler operators.
#[derive(Clone, Copy, Debug)]
pub enum Decompose {
    /// By a rule.
    Rule(DecomposeFn),
    /// It is not: other operators are expressed by it.
    Primitive,
}

/// How it is differentiated.
#[derive(Clone, Copy, Debug)]
pub enum Vjp {
    /// By a rule.
    Rule(VjpFn),
    /// By differentiating its decomposition.
    ViaDecomposition,
    /// It has no derivative, for the reason given.
    NonDifferentiable(&'static str),
    /// The rule is still to be written.
    Unwritten,
}

/// How it becomes loops.
#[derive(Clone, Copy, Debug)]
pub enum Lower {
    /// By a rule.
    Rule(LowerFn),
    /// By lowering its decomposition.
    ViaDecomposition,
    /// Not at all: its results are other ways through its argument's buffer.
    View,
    /// As a call of that kind, because a library computes it better than loops do.
    Extern(ExternKind),
    /// The rule is still to be written; it is a call of its kernel until then.
    Unwritten,
}

/// What kind of call an operator is that is not lowered to loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExternKind {
    /// A matrix multiplication of two factors: `mm(lhs, rhs)`.
    Mm,
    /// A matrix multiplication with an addend: `addmm(addend, lhs, rhs, beta, alpha)`.
    Addmm,
    /// A batched matrix multiplication: `bmm(lhs, rhs)`.
    Bmm,
    /// A convolution.
    Conv,
    /// The gradients of a convolution.
    ConvBackward,
    /// A call of its reference kernel and nothing more.
    Kernel,
}

/// A property that passes ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tag {
    /// PyTorch counts it among its core operators.
    Core,
    /// Each element of the result depends on the elements at the same place.
    Pointwise,
    /// It draws random numbers.
    Random,
    /// The shape of its result depends on data.
    DataDependentShape,
}

impl Tag {
    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Pointwise => "pointwise",
            Self::Random => "random",
            Self::DataDependentShape => "data-dependent-shape",
        }
    }
}

/// How far two right results may be apart, as a multiple of the usual tolerance of the element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The results must be equal bit for bit: nothing is rounded, elements are moved, picked, compared or change their sign.
    Exact,
    /// The usual tolerance of the element type.
    Usual,
    /// A multiple of it, for operators that sum many terms.
    Times(f64),
}

/// The element types that an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Those that have arithmetic; torch runs its calls on others.
    Usual,
    /// Every type, also those that are hardly more than storage ([`pyrite_tensor::DType::is_barebones`]): it moves
    /// elements, converts them or asks whether they are equal.
    Every,
}

/// What an operator leaves open, so that two results can both be right. Random numbers are another matter: [`Tag::Random`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Freedom {
    /// Nothing: there is one result, up to rounding.
    #[default]
    Nothing,
    /// Which of equal elements its last result names, anywhere along the dimension.
    Ties,
    /// Which of equal elements its last result names, of those that the result was taken from: a window, the elements so far.
    TiesInWindow,
    /// The signs of the vectors that it finds: all of its results but the values may be negated together.
    Signs,
    /// Whether half a turn is π or -π.
    HalfTurn,
    /// Which write to a place that is written several times stays.
    WriteOrder,
    /// What a number becomes that the type of its result cannot hold, an integer or a float of 8 bits.
    OutOfRange,
    /// What its result contains.
    Contents,
}

impl Freedom {
    /// What is left open, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Ties | Self::TiesInWindow => "which of equal elements is named",
            Self::Signs => "the signs of vectors",
            Self::HalfTurn => "the sign of half a turn",
            Self::WriteOrder => "which of several writes to a place stays",
            Self::OutOfRange => "what a number beyond the range of its type becomes",
            Self::Contents => "what memory contains that nobody wrote",
        }
    }
}

/// The record of an operator.
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// Its signature.
    pub schema: &'static str,
    /// What it computes, in a sentence.
    pub doc: &'static str,
    /// Its properties.
    pub tags: &'static [Tag],
    /// Metadata.
    pub infer: Infer,
    /// Values.
    pub eval: Eval,
    /// Derivative.
    pub vjp: Vjp,
    /// Positions of results that are not differentiated, such as statistics that the backward pass reads.
    pub constants: &'static [usize],
    /// Positions of results that are differentiated only where an operator of the backward half reads them: to a program
    /// they are constants.
    pub statistics: &'static [usize],
    /// Loops.
    pub lower: Lower,
    /// Simpler operators.
    pub decompose: Decompose,
    /// How it draws from the fast stream instead of PyTorch's generator, if it can.
    pub stream: Option<StreamFn>,
    /// How close results must be.
    pub tolerance: Tolerance,
    /// Which element types it takes.
    pub elements: Elements,
    /// What right results may differ in.
    pub freedom: Freedom,
    /// Calls to test it with, in the notation of `pyrite_ops::samples`.
    pub samples: &'static [&'static str],
}

impl OpDef {
    /// An operator with a kernel of its own.
    pub const fn kernel(schema: &'static str, doc: &'static str, infer: InferFn, eval: KernelFn) -> Self {
        Self {
            schema,
            doc,
            tags: &[],
            infer: Infer::Rule(infer),
            eval: Eval::Kernel(eval),
            vjp: Vjp::Unwritten,
            constants: &[],
            statistics: &[],
            lower: Lower::Unwritten,
            decompose: Decompose::Primitive,
            stream: None,
            tolerance: Tolerance::Usual,
            elements: Elements::Usual,
            freedom: Freedom::Nothing,
            samples: &[],
        }
    }

    /// An operator whose results are views of its argument.
    pub const fn view(schema: &'static str, doc: &'static str, infer: InferFn) -> Self {
        Self {
            infer: Infer::Rule(infer),
            eval: Eval::View,
            lower: Lower::View,
            tolerance: Tolerance::Exact,
            ..Self::written(schema, doc, "")
        }
    }

    /// An operator that is expressed by others.
    pub const fn composite(schema: &'static str, doc: &'static str, decompose: DecomposeFn) -> Self {
        Self {
            infer: Infer::ViaDecomposition,
            eval: Eval::ViaDecomposition,
            vjp: Vjp::ViaDecomposition,
            lower: Lower::ViaDecomposition,
            decompose: Decompose::Rule(decompose),
            ..Self::written(schema, doc, "")
        }
    }

    /// An in-place or out variant: runs the functional operator (by its full name) on the arguments without those that
    /// are only written, and copies the results into the written arguments.
    pub const fn written(schema: &'static str, doc: &'static str, functional: &'static str) -> Self {
        Self {
            schema,
            doc,
            tags: &[],
            infer: Infer::Written,
            eval: Eval::WriteBack(functional),
            vjp: Vjp::Unwritten,
            constants: &[],
            statistics: &[],
            lower: Lower::Unwritten,
            decompose: Decompose::Primitive,
            stream: None,
            tolerance: Tolerance::Usual,
            elements: Elements::Usual,
            freedom: Freedom::Nothing,
            samples: &[],
        }
    }

    /// With a result that the operator leaves open in a way.
    #[must_use]
    pub const fn free(self, freedom: Freedom) -> Self {
        Self { freedom, ..self }
    }

    /// With properties.
    #[must_use]
    pub const fn tags(self, tags: &'static [Tag]) -> Self {
        Self { tags, ..self }
    }

    /// With a decomposition beside its kernel.
    #[must_use]
    pub const fn decompose(self, rule: DecomposeFn) -> Self {
        let lower = match self.lower {
            Lower::Unwritten => Lower::ViaDecomposition,
            given => given,
        };
        Self { decompose: Decompose::Rule(rule), lower, ..self }
    }

    /// With a rule that draws from the fast stream.
    #[must_use]
    pub const fn stream(self, rule: StreamFn) -> Self {
        Self { stream: Some(rule), ..self }
    }

    /// With its own inference, for a composite that is inferred more cheaply than through its parts.
    #[must_use]
    pub const fn infer(self, rule: InferFn) -> Self {
        Self { infer: Infer::Rule(rule), ..self }
    }

    /// With a derivative.
    #[must_use]
    pub const fn vjp(self, vjp: Vjp) -> Self {
        Self { vjp, ..self }
    }

    /// With a derivative rule.
    #[must_use]
    pub const fn derivative(self, rule: VjpFn) -> Self {
        Self { vjp: Vjp::Rule(rule), ..self }
    }

    /// With results at some positions that are not differentiated.
    #[must_use]
    pub const fn constants(self, constants: &'static [usize]) -> Self {
        Self { constants, ..self }
    }

    /// With results at some positions that are constants to all but operators of the backward half.
    #[must_use]
    pub const fn statistics(self, statistics: &'static [usize]) -> Self {
        Self { statistics, ..self }
    }

    /// Without a derivative, for a reason.
    #[must_use]
    pub const fn no_derivative(self, reason: &'static str) -> Self {
        Self { vjp: Vjp::NonDifferentiable(reason), ..self }
    }

    /// With a lowering.
    #[must_use]
    pub const fn lower(self, rule: LowerFn) -> Self {
        Self { lower: Lower::Rule(rule), ..self }
    }

    /// As a call by design.
    #[must_use]
    pub const fn as_call(self, kind: ExternKind) -> Self {
        Self { lower: Lower::Extern(kind), ..self }
    }

    /// With arguments of every element type.
    #[must_use]
    pub const fn every_type(self) -> Self {
        Self { elements: Elements::Every, ..self }
    }

    /// With another tolerance.
    #[must_use]
    pub const fn tolerance(self, tolerance: Tolerance) -> Self {
        Self { tolerance, ..self }
    }

    /// With sample calls.
    #[must_use]
    pub const fn samples(self, samples: &'static [&'static str]) -> Self {
        Self { samples, ..self }
    }
}

/// A record with its schema read.
#[derive(Debug)]
pub struct Operator {
    /// The record.
    pub def: &'static OpDef,
    /// Its signature.
    pub schema: Schema,
}

/// A shared operator.
pub type OpRef = Arc<Operator>;

impl Operator {
    /// The full name, such as `aten.add.Tensor`.
    pub fn name(&self) -> &str {
        &self.schema.name
    }

    /// Whether it has a property.
    pub fn has(&self, tag: Tag) -> bool {
        self.def.tags.contains(&tag)
    }

    /// Whether the result is a view to PyTorch, by a flag on a tensor, whose elements are computed here (`_conj`).
    pub fn is_computed_view(&self) -> bool {
        let is_view = self.schema.returns.iter().any(|result| result.alias.as_ref().is_some_and(|a| !a.written));
        is_view && matches!(self.def.eval, Eval::Kernel(_))
    }
}

/// What a kernel gets.
pub struct Call<'a> {
    /// The arguments.
    pub args: Args<'a, Tensor>,
    /// What inference says of the results.
    pub out: &'a Value<Meta>,
    /// The program's random generator.
    pub rng: &'a RefCell<TorchGenerator>,
}

impl Call<'_> {
    /// What inference says of one result.
    pub fn out_meta(&self, index: usize) -> Result<&Meta, OpError> {
        let found = match self.out {
            Value::List(items) => items.get(index).and_then(Value::as_tensor),
            Value::Tensor(meta) if index == 0 => Some(meta),
            _ => None,
        };
        found.ok_or_else(|| OpError::fault(format!("{} has no result {index}", self.args.schema.name)))
    }

    /// A tensor for one result, of unspecified content, with the inferred shape, strides and type.
    pub fn allocate(&self, index: usize) -> Result<Tensor, OpError> {
        let meta = self.out_meta(index)?;
        let layout = meta.layout()?;
        Ok(Tensor::empty_strided(&layout.shape, &layout.stride, meta.dtype)?)
    }
}

/// All operators by name.
#[derive(Debug, Default)]
pub struct Registry {
    by_name: BTreeMap<Arc<str>, OpRef>,
    /// The overloads of a name without its overload part, in the order they were added.
    packets: BTreeMap<String, Vec<OpRef>>,
}

/// Why a set of records is no registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A schema cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Two records have one name.
    #[error("the operator {0} is defined twice")]
    Twice(String),
}

impl Registry {
    /// Collects records.
    pub fn new(tables: &[&'static [OpDef]]) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for def in tables.iter().copied().flatten() {
            let schema = Schema::parse(def.schema)?;
            let name = schema.name.clone();
            let op = Arc::new(Operator { def, schema });
            registry.packets.entry(packet(&name).to_owned()).or_default().push(op.clone());
            if registry.by_name.insert(name.clone(), op).is_some() {
                return Err(RegistryError::Twice(name.to_string()));
            }
        }
        Ok(registry)
    }

    /// The operator of a full name.
    pub fn get(&self, name: &str) -> Option<&OpRef> {
        self.by_name.get(name)
    }

    /// The operator that a rule calls by its full name, and the rule's arguments, in the order of the schema, bound to it.
    pub fn bound<T: Clone>(&self, name: &str, args: &[Value<T>]) -> Result<(&OpRef, Vec<Value<T>>), OpError> {
        let op = self.get(name).ok_or_else(|| OpError::fault(format!("a rule calls {name}, which does not exist")))?;
        let bound = op.schema.bind_in_order(args).map_err(|error| OpError::fault(error.to_string()))?;
        Ok((op, bound))
    }

    /// The overloads of a name such as `aten.add`, in the order of their definition.
    pub fn overloads(&self, packet: &str) -> &[OpRef] {
        self.packets.get(packet).map_or(&[], Vec::as_slice)
    }

    /// All operators in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &OpRef> {
        self.by_name.values()
    }
}

/// `aten.add` of `aten.add.Tensor`.
fn packet(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(packet, _)| packet)
}
