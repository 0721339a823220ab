//! Lowering: an operator's call written down as kernels of the loop IR.
//!
//! A rule gets a [`Lowering`]: the arguments of the call, each tensor as a [`Place`] in a buffer, and the places of the
//! results, whose buffers are to be filled. It writes kernels, most often by [`Lowering::map`] (one value for each
//! position of the result) or [`Lowering::reduce`]. A case that it cannot express is `OpError::Unsupported`: the call is
//! then made through its kernel.

use pyrite_loops::{
    Access, AxisId, Binary, Block, BufferId, Inst, Kernel, Phase, Reduce, Reduction, ResultId, Type, Val, Write,
};
use pyrite_sym::SymInt;
use pyrite_tensor::{DType, Scalar};

use crate::{Args, Meta, OpError, Value};

/// A tensor where loops meet it: a buffer, and how the tensor lies in it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferId,
    /// Shape, strides, offset and type.
    pub meta: Meta,
}

impl Place {
    /// The register type of its elements.
    pub fn ty(&self) -> Result<Type, OpError> {
        register(self.meta.dtype)
    }
}

/// The register type of an element type.
pub fn register(dtype: DType) -> Result<Type, OpError> {
    Type::of(dtype).ok_or_else(|| OpError::unsupported(format!("loops over elements of {dtype}")))
}

/// A call that is being lowered; see the module's text.
pub struct Lowering<'a> {
    /// The arguments.
    pub args: Args<'a, Place>,
    /// The tensors that are to be computed.
    pub results: &'a [Place],
    kernels: Vec<Kernel>,
}

impl<'a> Lowering<'a> {
    /// A call with its arguments and the places of its results.
    pub fn new(args: Args<'a, Place>, results: &'a [Place]) -> Self {
        Self { args, results, kernels: Vec::new() }
    }

    /// What was written down.
    pub fn into_kernels(self) -> Vec<Kernel> {
        self.kernels
    }

    /// The only result.
    pub fn result(&self) -> Result<&'a Place, OpError> {
        self.results.first().ok_or_else(|| OpError::fault(format!("{} has no result", self.args.schema.name)))
    }

    /// The metadata of an argument that is a tensor or a number.
    pub fn meta(&self, index: usize) -> Result<Meta, OpError> {
        match self.args.value(index) {
            Value::Tensor(place) => Ok(place.meta.clone()),
            other => other.as_scalar().map(Meta::number).ok_or_else(|| {
                OpError::unsupported(format!("{} with {} for argument {index}", self.args.schema.name, other.kind()))
            }),
        }
    }

    /// A kernel that is being written.
    pub fn nest(&self) -> Nest {
        Nest { kernel: Kernel { name: self.args.schema.name.to_string(), ..Kernel::default() }, code: Block::default() }
    }

    /// Adds a kernel.
    pub fn finish(&mut self, nest: Nest) {
        let Nest { mut kernel, code } = nest;
        if !code.is_empty() {
            kernel.phases.push(Phase { code, ..Phase::default() });
        }
        self.kernels.push(kernel);
    }

    /// One value for each position of the result, stored there in its type.
    pub fn map(&mut self, f: impl FnOnce(&mut Point<'_, '_>) -> Result<Val, OpError>) -> Result<(), OpError> {
        let result = self.result()?;
        let mut nest = self.nest();
        let axes = nest.rows(&result.meta.shape);
        let mut point = Point { lowering: self, axes: axes.clone(), nest };
        let value = f(&mut point)?;
        let mut nest = point.nest;
        nest.store(result, &axes, value)?;
        self.finish(nest);
        Ok(())
    }

    /// One value for each position of the first argument, reduced over dimensions, stored in the result.
    pub fn reduce(
        &mut self,
        dims: &[usize],
        op: Reduction,
        f: impl FnOnce(&mut Point<'_, '_>) -> Result<Val, OpError>,
        finish: impl FnOnce(&mut Nest, Val) -> Result<Val, OpError>,
    ) -> Result<(), OpError> {
        let source = self.args.tensor(0)?;
        let result = self.result()?;
        let mut nest = self.nest();
        let axes = nest.split(&source.meta.shape, dims);
        let mut point = Point { lowering: self, axes: axes.clone(), nest };
        let value = f(&mut point)?;
        let mut nest = point.nest;
        let reduced: Vec<AxisId> = dims.iter().map(|d| axes[*d]).collect();
        let value = nest.reduced(&reduced, op, value, None);
        let value = finish(&mut nest, value)?;
        let kept = kept(&axes, dims, result.meta.rank());
        nest.store_at(result, &kept, value)?;
        self.finish(nest);
        Ok(())
    }
}

/// The axes of a reduction's result: those of reduced dimensions are missing where the result has them, of size one.
pub fn kept(axes: &[AxisId], dims: &[usize], rank: usize) -> Vec<Option<AxisId>> {
    let keeps = rank == axes.len();
    axes.iter()
        .enumerate()
        .filter(|(d, _)| keeps || !dims.contains(d))
        .map(|(d, axis)| (!dims.contains(&d)).then_some(*axis))
        .collect()
}

/// A kernel that is being written: finished phases, and the code of the one at hand.
pub struct Nest {
    /// The kernel so far.
    pub kernel: Kernel,
    /// The code of the phase at hand.
    pub code: Block,
}

impl Nest {
    /// Makes rows of these extents.
    pub fn rows(&mut self, shape: &[SymInt]) -> Vec<AxisId> {
        self.split(shape, &[])
    }

    /// Makes an axis for each dimension; those that are not to be reduced are rows.
    pub fn split(&mut self, shape: &[SymInt], reduced: &[usize]) -> Vec<AxisId> {
        let axes: Vec<AxisId> = shape.iter().map(|extent| self.kernel.add_axis(extent.clone())).collect();
        self.kernel.rows.extend(axes.iter().enumerate().filter(|(d, _)| !reduced.contains(d)).map(|(_, axis)| *axis));
        axes
    }

    /// A way through a tensor: each of its dimensions moves along an axis, or not at all.
    pub fn access(&mut self, place: &Place, axes: &[Option<AxisId>]) -> pyrite_loops::AccessId {
        let mut steps = vec![SymInt::Int(0); self.kernel.axes.len()];
        for (stride, axis) in place.meta.stride.iter().zip(axes) {
            if let Some(axis) = axis {
                let step = &mut steps[axis.0 as usize];
                *step = step.clone() + stride.clone();
            }
        }
        self.kernel.add_access(Access {
            buffer: place.buffer,
            dtype: place.meta.dtype,
            offset: place.meta.offset.clone(),
            steps,
        })
    }

    /// A way through a tensor: a step along an axis is so many steps along a dimension, for each of the triples.
    pub fn access_by(&mut self, place: &Place, moves: &[(usize, AxisId, SymInt)]) -> pyrite_loops::AccessId {
        let mut steps = vec![SymInt::Int(0); self.kernel.axes.len()];
        for (dim, axis, times) in moves {
            let step = &mut steps[axis.0 as usize];
            *step = step.clone() + place.meta.stride[*dim].clone() * times.clone();
        }
        self.kernel.add_access(Access {
            buffer: place.buffer,
            dtype: place.meta.dtype,
            offset: place.meta.offset.clone(),
            steps,
        })
    }

    /// The element of a tensor that is broadcast over axes.
    pub fn load(&mut self, place: &Place, axes: &[AxisId]) -> Result<Val, OpError> {
        let axes = broadcast_axes(&self.kernel, &place.meta, axes)?;
        self.load_at(place, &axes)
    }

    /// The element of a tensor whose dimensions move along the given axes.
    pub fn load_at(&mut self, place: &Place, axes: &[Option<AxisId>]) -> Result<Val, OpError> {
        let ty = place.ty()?;
        let access = self.access(place, axes);
        Ok(self.code.push(Inst::Load(access), ty))
    }

    /// The element of a tensor as its memory holds it: of a half precision it is rounded, also where it is not stored
    /// in between.
    pub fn load_held(&mut self, place: &Place, axes: &[AxisId]) -> Result<Val, OpError> {
        let value = self.load(place, axes)?;
        Ok(self.held(place.meta.dtype, value))
    }

    /// A value of a half precision, rounded to it; others are what they are.
    pub fn held(&mut self, dtype: DType, value: Val) -> Val {
        match dtype {
            DType::F16 | DType::BF16 => self.code.wrap(dtype, value),
            _ => value,
        }
    }

    /// The element of a tensor, `at` elements further.
    pub fn gather(&mut self, place: &Place, axes: &[Option<AxisId>], at: Val) -> Result<Val, OpError> {
        let ty = place.ty()?;
        let access = self.access(place, axes);
        Ok(self.code.push(Inst::Gather { access, at }, ty))
    }

    /// Stores a value in its place, brought to its type.
    pub fn store(&mut self, place: &Place, axes: &[AxisId], value: Val) -> Result<(), OpError> {
        let axes: Vec<Option<AxisId>> = axes.iter().copied().map(Some).collect();
        self.store_at(place, &axes, value)
    }

    /// Stores a value in a tensor whose dimensions move along the given axes.
    pub fn store_at(&mut self, place: &Place, axes: &[Option<AxisId>], value: Val) -> Result<(), OpError> {
        let ty = place.ty()?;
        let value = self.narrowed(place.meta.dtype, value)?;
        let access = self.access(place, axes);
        self.code.push(Inst::Store { access, value }, ty);
        Ok(())
    }

    /// Writes a value `at` elements further in a tensor.
    pub fn scatter(
        &mut self,
        place: &Place,
        axes: &[Option<AxisId>],
        at: Val,
        value: Val,
        write: Write,
    ) -> Result<(), OpError> {
        let ty = place.ty()?;
        let value = self.narrowed(place.meta.dtype, value)?;
        let access = self.access(place, axes);
        self.code.push(Inst::Scatter { access, at, value, write }, ty);
        Ok(())
    }

    /// A value in an element type. Half precisions are rounded when they are stored: what is fused goes on with more.
    fn narrowed(&mut self, dtype: DType, value: Val) -> Result<Val, OpError> {
        let value = self.code.cast(register(dtype)?, value);
        Ok(match dtype {
            DType::F16 | DType::BF16 => value,
            dtype => self.code.wrap(dtype, value),
        })
    }

    /// Ends the phase with a reduction over axes; the next phase begins with its result.
    pub fn reduced(&mut self, axes: &[AxisId], op: Reduction, value: Val, index: Option<Val>) -> Val {
        let result = self.also_reduced(op, value, index);
        self.next_phase(axes);
        self.result(result)
    }

    /// Adds a reduction to the phase at hand.
    pub fn also_reduced(&mut self, op: Reduction, value: Val, index: Option<Val>) -> ResultId {
        let ty = if index.is_some() { Type::I64 } else { self.code.ty(value) };
        let result = self.kernel.add_result(ty);
        let reduce = Reduce { op, value, index, result };
        match self.kernel.phases.last_mut() {
            Some(open) if open.code.is_empty() => open.reduces.push(reduce),
            _ => self.kernel.phases.push(Phase { reduces: vec![reduce], ..Phase::default() }),
        }
        result
    }

    /// Ends the phase at hand, which runs over axes.
    pub fn next_phase(&mut self, axes: &[AxisId]) {
        let code = std::mem::take(&mut self.code);
        match self.kernel.phases.last_mut() {
            Some(open) if open.code.is_empty() => {
                open.axes = axes.to_vec();
                open.code = code;
            }
            _ => self.kernel.phases.push(Phase { axes: axes.to_vec(), code, reduces: Vec::new() }),
        }
    }

    /// What an earlier phase reduced.
    pub fn result(&mut self, result: ResultId) -> Val {
        let ty = self.kernel.results[result.0 as usize];
        self.code.push(Inst::Result(result), ty)
    }

    /// A size that may be known only when the program runs.
    pub fn size(&mut self, size: &SymInt) -> Val {
        if let Some(number) = size.as_int() {
            return self.code.integer(number, Type::I64);
        }
        let number = self.kernel.add_number(size.clone());
        self.code.push(Inst::Size(number), Type::I64)
    }

    /// A literal as an element type can hold it; half precisions are not rounded.
    pub fn literal_of(&mut self, scalar: Scalar, dtype: DType) -> Result<Val, OpError> {
        let value = self.literal(scalar, register(dtype)?)?;
        Ok(if dtype.is_float() { value } else { self.code.wrap(dtype, value) })
    }

    /// A literal in a type.
    pub fn literal(&mut self, scalar: Scalar, ty: Type) -> Result<Val, OpError> {
        Ok(match (scalar, ty) {
            (Scalar::Complex(_), _) => return Err(OpError::unsupported("a complex number in loops")),
            (scalar, Type::Bool) => self.code.integer(i64::from(scalar.to_bool()), ty),
            (Scalar::Float(number), ty) => self.code.number(number, ty),
            (scalar, ty) => self.code.integer(scalar.to_i64(), ty),
        })
    }

    /// The index along an axis.
    pub fn index(&mut self, axis: AxisId) -> Val {
        self.code.push(Inst::Index(axis), Type::I64)
    }

    /// An index read from memory, checked against an extent, as a distance in elements.
    pub fn bounded(&mut self, index: Val, extent: &SymInt, stride: &SymInt) -> Val {
        let index = self.code.cast(Type::I64, index);
        let extent = self.size(extent);
        let index = self.code.push(Inst::Bounded { index, extent }, Type::I64);
        self.distance(index, stride)
    }

    /// An index as a distance in elements.
    pub fn distance(&mut self, index: Val, stride: &SymInt) -> Val {
        if stride.as_int() == Some(1) {
            return index;
        }
        let stride = self.size(stride);
        self.code.binary(Binary::Mul, index, stride)
    }
}

/// The axes of a kernel that the dimensions of a tensor move along when it is broadcast over them. A symbolic size may be
/// one: where it is not the axis's, the rule of the result's metadata has asked whether it is.
pub fn broadcast_axes(kernel: &Kernel, meta: &Meta, axes: &[AxisId]) -> Result<Vec<Option<AxisId>>, OpError> {
    let skipped = axes
        .len()
        .checked_sub(meta.rank())
        .ok_or_else(|| OpError::unsupported("an operand of a higher rank than the result"))?;
    let is_single = |size: &SymInt, axis: AxisId| match size.as_int() {
        Some(size) => size == 1,
        None => size != kernel.extent(axis) && size.is_eq(1),
    };
    let dims = meta.shape.iter().zip(&axes[skipped..]);
    Ok(dims.map(|(size, axis)| (!is_single(size, *axis)).then_some(*axis)).collect())
}

/// A position of a result, at which a rule computes.
pub struct Point<'l, 'a> {
    /// The call.
    pub lowering: &'l Lowering<'a>,
    /// The axes of the position.
    pub axes: Vec<AxisId>,
    /// The kernel.
    pub nest: Nest,
}

impl Point<'_, '_> {
    /// The code of the phase at hand.
    pub fn code(&mut self) -> &mut Block {
        &mut self.nest.code
    }

    /// The register type of the result.
    pub fn ty(&self) -> Result<Type, OpError> {
        self.lowering.result()?.ty()
    }

    /// The element of an argument at this position, in its own register type; a number as a literal. Arithmetic in a
    /// half precision may go on with more digits than it holds; a result of another type begins with those it holds.
    pub fn own(&mut self, index: usize) -> Result<Val, OpError> {
        match self.lowering.args.value(index) {
            Value::Tensor(place) => {
                let axes = self.axes.clone();
                if self.lowering.result()?.meta.dtype == place.meta.dtype {
                    self.nest.load(place, &axes)
                } else {
                    self.nest.load_held(place, &axes)
                }
            }
            Value::Int(size) => Ok(self.nest.size(size)),
            other => match other.as_scalar() {
                Some(Scalar::Bool(value)) => Ok(self.code().integer(i64::from(value), Type::Bool)),
                Some(Scalar::Float(number)) => Ok(self.code().number(number, Type::F64)),
                _ => Err(OpError::unsupported(format!("{} as an operand of loops", other.kind()))),
            },
        }
    }

    /// The same in a type; a literal is made in that type, and wraps around as the result's elements do.
    pub fn arg(&mut self, index: usize, ty: Type) -> Result<Val, OpError> {
        if let Some(scalar) = self.lowering.args.value(index).as_scalar() {
            let dtype = self.lowering.result()?.meta.dtype;
            return if register(dtype)? == ty { self.literal_of(scalar, dtype) } else { self.literal(scalar, ty) };
        }
        let value = self.own(index)?;
        Ok(self.code().cast(ty, value))
    }

    /// The same for functions that jump: an element of a half precision is rounded to it first.
    pub fn held(&mut self, index: usize, ty: Type) -> Result<Val, OpError> {
        let value = self.arg(index, ty)?;
        Ok(match self.lowering.args.value(index) {
            Value::Tensor(place) => self.nest.held(place.meta.dtype, value),
            _ => value,
        })
    }

    /// A number in a type. A size that is known only when the program runs is read then.
    pub fn number(&mut self, index: usize, ty: Type) -> Result<Val, OpError> {
        let args = &self.lowering.args;
        if matches!(args.value(index), Value::Int(size) if size.as_int().is_none()) {
            let value = self.own(index)?;
            return Ok(self.code().cast(ty, value));
        }
        let scalar = args.scalar(index)?;
        self.literal(scalar, ty)
    }

    /// A literal in a type.
    pub fn literal(&mut self, scalar: Scalar, ty: Type) -> Result<Val, OpError> {
        self.nest.literal(scalar, ty)
    }

    /// A literal as an element type can hold it; half precisions are not rounded.
    pub fn literal_of(&mut self, scalar: Scalar, dtype: DType) -> Result<Val, OpError> {
        self.nest.literal_of(scalar, dtype)
    }
}
