//! Kernels: rows, phases, accesses.

use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use crate::{Block, Inst, Type, Val};

/// A buffer of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// An axis of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AxisId(pub u32);

/// An access of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccessId(pub u32);

/// A number that a phase reduces and later phases use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultId(pub u32);

/// A loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// How many positions it has.
    pub extent: SymInt,
}

/// A way through a buffer: at the position `(i, j, …)` of the axes it is at the element
/// `offset + i·steps[0] + j·steps[1] + …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// Its element type.
    pub dtype: DType,
    /// The element of the position zero.
    pub offset: SymInt,
    /// How many elements a step along each axis of the kernel is, by [`AxisId`].
    pub steps: Vec<SymInt>,
}

impl Access {
    /// The step along an axis.
    pub fn step(&self, axis: AxisId) -> &SymInt {
        &self.steps[axis.0 as usize]
    }
}

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; zero of none.
    Sum,
    /// Their product; one of none.
    Prod,
    /// The largest; NaN if one is.
    Max,
    /// The smallest; NaN if one is.
    Min,
    /// Whether one is true.
    Any,
    /// Whether all are true.
    All,
    /// The number given as `Reduce::index` with the largest value, of the first if several are equal; the first NaN
    /// counts as largest.
    ArgMax,
    /// The same with the smallest value; the first NaN counts as smallest.
    ArgMin,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: &[Self] =
        &[Self::Sum, Self::Prod, Self::Max, Self::Min, Self::Any, Self::All, Self::ArgMax, Self::ArgMin];
}

/// A value of a phase reduced over all of the phase's axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduce {
    /// How.
    pub op: Reduction,
    /// The value.
    pub value: Val,
    /// What an [`Reduction::ArgMax`] or [`Reduction::ArgMin`] gives, a 64-bit integer that grows with the position.
    pub index: Option<Val>,
    /// The name of what comes out.
    pub result: ResultId,
}

/// A part of a kernel that runs for each row; see the crate's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// Its own axes, outermost first; the last one has the longest runs in memory.
    pub axes: Vec<AxisId>,
    /// What happens at each position.
    pub code: Block,
    /// What is reduced over the axes.
    pub reduces: Vec<Reduce>,
}

impl Phase {
    /// Whether its positions have to take their turn in order: what is reduced at some is used at later ones.
    pub fn is_ordered(&self) -> bool {
        self.code.insts().iter().any(|inst| matches!(inst, Inst::Before(_)))
    }
}

/// Which positions are computed side by side, in the lanes of a vector register. Where positions of a phase take their
/// turn, it has to be [`Lanes::Rows`] when the kernel is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// Neighbours along the last axis of a phase. What a phase reduces is summed up over the lanes at its end; a phase
    /// without axes computes one position.
    #[default]
    Phase,
    /// Neighbours along the last axis of the rows: every lane is a row of its own, and phases loop one position at a
    /// time.
    Rows,
}

/// A piece of a program; see the crate's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Its name, for people.
    pub name: String,
    /// All axes, of rows and phases.
    pub axes: Vec<Axis>,
    /// The axes that all phases share, outermost first.
    pub rows: Vec<AxisId>,
    /// What runs for each row, in order.
    pub phases: Vec<Phase>,
    /// Which positions a vector register holds.
    pub lanes: Lanes,
    /// The ways through memory.
    pub accesses: Vec<Access>,
    /// The type of each reduced number, by [`ResultId`].
    pub results: Vec<Type>,
    /// Numbers that are known when the kernel is called: sizes that the code computes with.
    pub numbers: Vec<SymInt>,
}

impl Kernel {
    /// An access.
    pub fn access(&self, id: AccessId) -> &Access {
        &self.accesses[id.0 as usize]
    }

    /// The extent of an axis.
    pub fn extent(&self, id: AxisId) -> &SymInt {
        &self.axes[id.0 as usize].extent
    }

    /// Adds an axis; no access moves along it yet.
    pub fn add_axis(&mut self, extent: SymInt) -> AxisId {
        self.axes.push(Axis { extent });
        for access in &mut self.accesses {
            access.steps.push(0.into());
        }
        AxisId(self.axes.len() as u32 - 1)
    }

    /// Adds an access, or finds the same one.
    pub fn add_access(&mut self, access: Access) -> AccessId {
        let found = self.accesses.iter().position(|known| *known == access);
        AccessId(found.unwrap_or_else(|| {
            self.accesses.push(access);
            self.accesses.len() - 1
        }) as u32)
    }

    /// Adds a number, or finds the same one.
    pub fn add_number(&mut self, number: SymInt) -> u32 {
        let found = self.numbers.iter().position(|known| *known == number);
        found.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        }) as u32
    }

    /// Adds a reduced number of a type.
    pub fn add_result(&mut self, ty: Type) -> ResultId {
        self.results.push(ty);
        ResultId(self.results.len() as u32 - 1)
    }

    /// Tells of every access that is made, in order, and whether it writes.
    pub fn each_access(&self, mut f: impl FnMut(AccessId, Direction)) {
        for phase in &self.phases {
            for inst in phase.code.insts() {
                if let Some(access) = inst.access() {
                    f(access, if inst.writes() { Direction::Write } else { Direction::Read });
                }
            }
        }
    }

    /// The buffers it writes, each once, in the order of the first write.
    pub fn written(&self) -> Vec<BufferId> {
        self.buffers(Direction::Write)
    }

    /// The buffers it reads, each once, in the order of the first read.
    pub fn read(&self) -> Vec<BufferId> {
        self.buffers(Direction::Read)
    }

    fn buffers(&self, wanted: Direction) -> Vec<BufferId> {
        let mut found = Vec::new();
        self.each_access(|access, direction| {
            let buffer = self.access(access).buffer;
            if direction == wanted && !found.contains(&buffer) {
                found.push(buffer);
            }
        });
        found
    }
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From memory.
    Read,
    /// To memory.
    Write,
}
