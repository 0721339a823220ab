//! Changes to a kernel's axes that leave its meaning alone: dropping, splitting, merging, ordering, renaming.

use pyrite_loops::{Access, AccessId, AxisId, Block, Inst, Kernel, Phase, Reduce, Reduction, ResultId, Val};
use pyrite_sym::SymInt;

/// Whether the code of a kernel computes with the index of an axis.
pub fn is_counted(kernel: &Kernel, axis: AxisId) -> bool {
    kernel.phases.iter().any(|phase| phase.code.insts().contains(&Inst::Index(axis)))
}

/// Brings a kernel to the form in which kernels are compared: no axes of one position, long runs of memory last. Axes
/// stay those of the tensor: an axis that is gone cannot be matched.
pub fn normalize(kernel: &mut Kernel) {
    for index in 0..kernel.axes.len() {
        let axis = AxisId(index as u32);
        if kernel.extent(axis).as_int() == Some(1) && !is_counted(kernel, axis) {
            kernel.rows.retain(|row| *row != axis);
            kernel.phases.iter_mut().for_each(|phase| phase.axes.retain(|own| *own != axis));
            kernel.accesses.iter_mut().for_each(|access| access.steps[index] = SymInt::Int(0));
        }
    }
    if let Some(guide) = guide_of_rows(kernel) {
        let mut rows = std::mem::take(&mut kernel.rows);
        order(&mut rows, kernel.access(guide));
        kernel.rows = rows;
    }
    for index in 0..kernel.phases.len() {
        let phase = &kernel.phases[index];
        let picks = phase.reduces.iter().any(|r| matches!(r.op, Reduction::ArgMax | Reduction::ArgMin));
        let ordered = picks || phase.is_ordered();
        if let (false, Some(guide)) = (ordered, guide_of_phase(kernel, phase)) {
            let mut axes = phase.axes.clone();
            order(&mut axes, kernel.access(guide));
            kernel.phases[index].axes = axes;
        }
    }
}

/// The access that decides the order of rows: the last write.
fn guide_of_rows(kernel: &Kernel) -> Option<AccessId> {
    let mut found = None;
    kernel.each_access(|access, direction| {
        if direction == pyrite_loops::Direction::Write {
            found = Some(access);
        }
    });
    found
}

/// The access that decides the order of a phase's axes: the one that moves along most of them.
fn guide_of_phase(kernel: &Kernel, phase: &Phase) -> Option<AccessId> {
    let moves = |id: &AccessId| {
        let access = kernel.access(*id);
        phase.axes.iter().filter(|axis| access.step(**axis).as_int() != Some(0)).count()
    };
    phase.code.insts().iter().filter_map(Inst::access).max_by_key(moves)
}

/// Sorts axes by the steps of an access, the longest first; where steps cannot be compared the order stays.
fn order(axes: &mut [AxisId], guide: &Access) {
    let steps: Option<Vec<i64>> = axes.iter().map(|axis| guide.step(*axis).as_int()).collect();
    if let Some(steps) = steps
        && steps.iter().all(|step| *step != 0)
    {
        let mut sorted: Vec<(i64, AxisId)> = steps.iter().map(|s| -s.abs()).zip(axes.iter().copied()).collect();
        sorted.sort_by_key(|(step, _)| *step);
        axes.iter_mut().zip(sorted).for_each(|(axis, (_, new))| *axis = new);
    }
}

/// Merges neighbouring axes of rows and of phases where every access takes them as one.
pub fn merge(kernel: &mut Kernel) {
    while let Some((outer, inner)) = mergeable(kernel) {
        let extent = kernel.extent(outer).clone() * kernel.extent(inner).clone();
        kernel.axes[inner.0 as usize].extent = extent;
        for access in &mut kernel.accesses {
            access.steps[outer.0 as usize] = SymInt::Int(0);
        }
        kernel.rows.retain(|axis| *axis != outer);
        for phase in &mut kernel.phases {
            phase.axes.retain(|axis| *axis != outer);
        }
    }
}

/// Two axes that are neighbours wherever one of them runs, and that every access takes as one.
fn mergeable(kernel: &Kernel) -> Option<(AxisId, AxisId)> {
    let lists = || std::iter::once(&kernel.rows).chain(kernel.phases.iter().map(|phase| &phase.axes));
    let neighbours = |outer: AxisId, inner: AxisId| {
        lists().all(|list| {
            let at = list.iter().position(|axis| *axis == outer);
            list.iter().position(|axis| *axis == inner) == at.map(|at| at + 1)
        })
    };
    let as_one = |outer: AxisId, inner: AxisId| {
        let extent = kernel.extent(inner);
        kernel.accesses.iter().all(|access| *access.step(outer) == access.step(inner).clone() * extent)
    };
    lists().flat_map(|list| list.windows(2)).map(|pair| (pair[0], pair[1])).find(|(outer, inner)| {
        as_one(*outer, *inner)
            && neighbours(*outer, *inner)
            && !is_counted(kernel, *outer)
            && !is_counted(kernel, *inner)
    })
}

/// Splits an axis of the rows in two: the outer one gets an extent that divides the whole.
pub fn split(kernel: &mut Kernel, position: usize, outer: i64) -> bool {
    let axis = kernel.rows[position];
    let Some(whole) = kernel.extent(axis).as_int() else { return false };
    if outer < 1 || whole % outer != 0 || is_counted(kernel, axis) {
        return false;
    }
    let inner = whole / outer;
    let new = kernel.add_axis(outer.into());
    kernel.axes[axis.0 as usize].extent = inner.into();
    for access in &mut kernel.accesses {
        access.steps[new.0 as usize] = access.steps[axis.0 as usize].clone() * SymInt::Int(inner);
    }
    kernel.rows.insert(position, new);
    true
}

/// Makes the last rows axes of every phase, so that only the first `count` stay rows. Only a kernel that reduces
/// nothing can be changed so.
pub fn sink(kernel: &mut Kernel, count: usize) {
    let sunk = kernel.rows.split_off(count);
    for phase in &mut kernel.phases {
        phase.axes.splice(0..0, sunk.iter().copied());
    }
}

/// Appends the phases of a kernel to those of another, with axes renamed: pairs say which axis of the second is which
/// of the first; the others are new.
pub fn append(kernel: &mut Kernel, other: &Kernel, pairs: &[(AxisId, AxisId)]) {
    let mut names: Vec<Option<AxisId>> = vec![None; other.axes.len()];
    for (own, theirs) in pairs {
        names[theirs.0 as usize] = Some(*own);
    }
    let names: Vec<AxisId> = names
        .iter()
        .enumerate()
        .map(|(i, name)| name.unwrap_or_else(|| kernel.add_axis(other.axes[i].extent.clone())))
        .collect();
    let accesses: Vec<AccessId> = other
        .accesses
        .iter()
        .map(|access| {
            let mut steps = vec![SymInt::Int(0); kernel.axes.len()];
            for (step, name) in access.steps.iter().zip(&names) {
                let slot = &mut steps[name.0 as usize];
                *slot = slot.clone() + step.clone();
            }
            kernel.add_access(Access { steps, ..access.clone() })
        })
        .collect();
    let first = kernel.results.len() as u32;
    kernel.results.extend(&other.results);
    let numbers: Vec<u32> = other.numbers.iter().map(|number| kernel.add_number(number.clone())).collect();
    for phase in &other.phases {
        let mut code = Block::default();
        let mut values = Vec::with_capacity(phase.code.len());
        for (value, inst) in phase.code.iter() {
            let renamed = match *inst {
                Inst::Index(axis) => Inst::Index(names[axis.0 as usize]),
                Inst::Size(number) => Inst::Size(numbers[number as usize]),
                Inst::Result(result) => Inst::Result(ResultId(first + result.0)),
                Inst::Before(result) => Inst::Before(ResultId(first + result.0)),
                inst => with_access(inst, &|id| accesses[id.0 as usize]),
            };
            let renamed = renamed.map_operands(&mut |v: Val| values[v.0 as usize]);
            values.push(code.push(renamed, phase.code.ty(value)));
        }
        let reduces = phase
            .reduces
            .iter()
            .map(|r| Reduce {
                op: r.op,
                value: values[r.value.0 as usize],
                index: r.index.map(|v| values[v.0 as usize]),
                result: ResultId(first + r.result.0),
            })
            .collect();
        let axes = phase.axes.iter().map(|axis| names[axis.0 as usize]).collect();
        kernel.phases.push(Phase { axes, code, reduces });
    }
}

/// The instruction with another access.
pub fn with_access(inst: Inst, f: &dyn Fn(AccessId) -> AccessId) -> Inst {
    match inst {
        Inst::Load(access) => Inst::Load(f(access)),
        Inst::Offset(access) => Inst::Offset(f(access)),
        Inst::Gather { access, at } => Inst::Gather { access: f(access), at },
        Inst::Store { access, value } => Inst::Store { access: f(access), value },
        Inst::Scatter { access, at, value, write } => Inst::Scatter { access: f(access), at, value, write },
        other => other,
    }
}
