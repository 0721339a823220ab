//! The loops of an entry: over the rows of its thread or block, over the phases, over the positions of a phase.
//!
//! Registers are written more than once only here: counters, accumulators, results.

use pyrite_loops::{AccessId, AxisId, BufferId, Inst, Kernel, Phase, Table, Val};

use crate::emit::Param;
use crate::mapping::{KeptRow, Mapping, Tile, Way, grid_axes, may_be_scratch, stays, stays_in_registers};
use crate::reduce::Accumulator;
use crate::text::{Body, Class, Reg};

/// What was written of an entry.
pub(crate) struct Entry {
    body: Body,
    loaded: Vec<(Param, Reg)>,
    shared: usize,
    /// The tables that it looks words up in.
    pub(crate) tables: Vec<Table>,
}

impl Entry {
    /// Its text between the braces, where parameters have these numbers.
    pub(crate) fn text(&self, params: &[Param]) -> String {
        let mut text = String::new();
        if self.shared > 0 {
            text.push_str(&format!("    .shared .align 8 .b8 shared[{}];\n", self.shared));
        }
        let body = self.body.finish();
        let declared = body.lines().take_while(|line| line.trim_start().starts_with(".reg")).count();
        let mut lines = body.lines();
        for line in lines.by_ref().take(declared) {
            text.push_str(line);
            text.push('\n');
        }
        for (param, register) in &self.loaded {
            let number = params.iter().position(|known| known == param).unwrap_or(0);
            text.push_str(&format!("    ld.param.u64 {register}, [a{number}];\n"));
        }
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// How many warps a block has that goes through a tile.
pub(crate) const TILE_WARPS: usize = 8;

/// How many positions of a phase are computed together, so that their loads are under way together.
fn unrolled(phase: &Phase) -> usize {
    match phase.code.len() {
        _ if phase.axes.is_empty() => 1,
        0..=12 => 8,
        13..=48 => 4,
        _ => 1,
    }
}

/// What is written for a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Load,
    Compute,
}

/// Writes an entry.
pub(crate) struct Emitter<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) mapping: Mapping,
    /// How many neighbours along an axis the thread takes at once.
    pub(crate) lanes: usize,
    /// That axis.
    pub(crate) lane_axis: Option<AxisId>,
    /// How the block keeps its row, and which run of the thread is written now.
    pub(crate) row: Option<KeptRow>,
    run: usize,
    /// What registers hold of memory at each run, as loads would give it.
    kept: Vec<(Way, usize, Vec<Reg>)>,
    /// The number of the thread's warp, and how many there are, where warps share positions.
    pub(crate) warp: Option<(Reg, Reg)>,
    /// Whether the lane has a row, where lanes are rows.
    has_row: Option<Reg>,
    /// Whether a row follows, where a block takes neighbouring rows one after the other.
    pub(crate) has_next_row: Option<Reg>,
    /// What a block adds up over its rows, for each access at each run.
    sums: Vec<(AccessId, usize, Vec<Reg>)>,
    /// Where each access is at the first run.
    at_first_run: Vec<Option<Reg>>,
    /// The values of the present phase that are the same at all of its positions.
    pub(crate) uniform: Vec<Option<Reg>>,
    /// What the present phase divides by: the reciprocal, the number with the other sign, and whether it is of moderate size.
    pub(crate) reciprocals: Vec<(Reg, (Reg, Reg, Reg))>,
    /// What was loaded ahead for each run.
    preloaded: Vec<(AccessId, usize, Vec<Reg>)>,
    /// How the block goes through a tile.
    tile: Option<Tile>,
    pub(crate) body: Body,
    loaded: Vec<(Param, Reg)>,
    /// The index of each axis that runs, counted from where the launch begins.
    pub(crate) indices: Vec<Option<Reg>>,
    /// Where each access is at the present row.
    at_row: Vec<Option<Reg>>,
    /// The reduced numbers.
    pub(crate) results: Vec<Option<Reg>>,
    /// The accumulators of the present phase.
    pub(crate) accumulators: Vec<Accumulator>,
    /// False after a fault: what follows touches memory no more that an index leads to.
    pub(crate) healthy: Option<Reg>,
    /// Buffers that the block has written and read since its threads last met.
    written: Vec<BufferId>,
    read: Vec<BufferId>,
    /// How many bytes of shared memory there are, and whether some thread may still read them.
    pub(crate) shared: usize,
    pub(crate) shared_is_read: bool,
}

impl<'k> Emitter<'k> {
    /// Writes an entry that takes so many neighbours at once, and keeps rows if it is told how; parameters that are not
    /// known yet are added.
    pub(crate) fn entry(
        kernel: &'k Kernel,
        mapping: Mapping,
        lanes: i64,
        row: Option<KeptRow>,
        params: &mut Vec<Param>,
    ) -> Entry {
        let mut emitter = Self::new(kernel, mapping, lanes, row);
        emitter.kernel();
        emitter.finish(params)
    }

    /// Writes an entry whose blocks go through tiles.
    pub(crate) fn tiled_entry(kernel: &'k Kernel, tile: Tile, params: &mut Vec<Param>) -> Entry {
        let mut emitter = Self::new(kernel, Mapping::Positions, 1, None);
        emitter.tile = Some(tile);
        emitter.tiles(tile);
        emitter.finish(params)
    }

    pub(crate) fn new(kernel: &'k Kernel, mapping: Mapping, lanes: i64, row: Option<KeptRow>) -> Self {
        Self {
            kernel,
            mapping,
            lanes: lanes as usize,
            lane_axis: grid_axes(kernel, mapping).last().copied().filter(|_| lanes > 1 && row.is_none()),
            row,
            run: 0,
            kept: Vec::new(),
            warp: None,
            has_row: None,
            has_next_row: None,
            sums: Vec::new(),
            at_first_run: vec![None; kernel.accesses.len()],
            uniform: Vec::new(),
            reciprocals: Vec::new(),
            preloaded: Vec::new(),
            tile: None,
            body: Body::default(),
            loaded: Vec::new(),
            indices: vec![None; kernel.axes.len()],
            at_row: vec![None; kernel.accesses.len()],
            results: vec![None; kernel.results.len()],
            accumulators: Vec::new(),
            healthy: None,
            written: Vec::new(),
            read: Vec::new(),
            shared: 0,
            shared_is_read: false,
        }
    }

    fn finish(self, params: &mut Vec<Param>) -> Entry {
        for (param, _) in &self.loaded {
            if !params.contains(param) {
                params.push(*param);
            }
        }
        let Self { body, loaded, shared, .. } = self;
        let tables = body.tables.clone();
        Entry { body, loaded, shared, tables }
    }

    /// The register of a parameter.
    pub(crate) fn param(&mut self, param: Param) -> Reg {
        if let Some((_, register)) = self.loaded.iter().find(|(known, _)| *known == param) {
            return register.clone();
        }
        let register = self.body.reg(Class::B64);
        self.loaded.push((param, register.clone()));
        register
    }

    fn special(&mut self, name: &str) -> Reg {
        let narrow = self.body.op(Class::B32, "mov.u32", &[name]);
        self.body.op(Class::B64, "cvt.u64.u32", &[&narrow])
    }

    fn kernel(&mut self) {
        let bounded = |phase: &Phase| phase.code.insts().iter().any(|inst| matches!(inst, Inst::Bounded { .. }));
        if self.kernel.phases.iter().any(bounded) {
            self.healthy = Some(self.body.constant(Class::Pred, 1));
        }
        for result in 0..self.kernel.results.len() {
            let ty = self.kernel.results[result];
            let class = if ty == pyrite_loops::Type::Bool { Class::B32 } else { Class::of(ty) };
            self.results[result] = Some(self.body.constant(class, 0));
        }
        let (block, thread) = (self.special("%ctaid.x"), self.special("%tid.x"));
        let (blocks, threads) = (self.special("%nctaid.x"), self.special("%ntid.x"));
        let count = self.param(Param::Count);
        let columns = self.mapping == Mapping::Columns;
        let lane = columns.then(|| self.body.op(Class::B64, "and.b64", &[&thread, "31"]));
        let (row, stride) = match self.mapping {
            Mapping::Blocks => (block, blocks),
            Mapping::Columns => {
                self.warp = Some((
                    self.body.op(Class::B64, "shr.u64", &[&thread, "5"]),
                    self.body.op(Class::B64, "shr.u64", &[&threads, "5"]),
                ));
                let first = self.body.op(Class::B64, "shl.b64", &[&block, "5"]);
                (first, self.body.op(Class::B64, "shl.b64", &[&blocks, "5"]))
            }
            Mapping::Positions | Mapping::Rows => {
                let first = self.body.op(Class::B64, "mad.lo.s64", &[&block, &threads, &thread]);
                (first, self.body.op(Class::B64, "mul.lo.s64", &[&blocks, &threads]))
            }
        };
        let own = match &lane {
            Some(lane) => self.body.op(Class::B64, "add.s64", &[&row, lane]),
            None => row.clone(),
        };
        let (row, stride, last) = match self.row {
            // Rows that are added up are neighbours.
            Some(kept) if kept.adds => {
                let inner = self.kernel.rows.last().map(|axis| self.param(Param::Extent(*axis))).unwrap_or_default();
                let (axes, count) = (&self.kernel.rows, self.param(Param::Count));
                self.decode(&axes[..axes.len() - 1], &row, &count, 1);
                self.start_sums(kept);
                (self.body.constant(Class::B64, 0), "1".to_owned(), inner)
            }
            _ => (row, stride, count.clone()),
        };
        let at = self.body.op(Class::B64, "mov.b64", &[&row]);
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        let over = self.body.op(Class::Pred, "setp.ge.u64", &[&at, &last]);
        self.body.line(&format!("@{over} bra {done}"));
        let axes = grid_axes(self.kernel, self.mapping);
        let mut position = at.clone();
        if let Some(lane) = &lane {
            // Lanes behind the last row do nothing, but they meet the others.
            let row = self.body.op(Class::B64, "add.s64", &[&at, lane]);
            let there = self.body.op(Class::Pred, "setp.lt.u64", &[&row, &count]);
            position = self.body.op(Class::B64, "selp.b64", &[&row, &at, &there]);
            self.has_row = Some(there);
        }
        match (self.row, axes.last()) {
            (Some(kept), Some(inner)) if kept.adds => {
                self.indices[inner.0 as usize] = Some(at.clone());
                let next = self.body.op(Class::B64, "add.s64", &[&at, "1"]);
                self.has_next_row = Some(self.body.op(Class::Pred, "setp.lt.u64", &[&next, &last]));
            }
            (row, _) => self.decode(&axes, &position, &count, if row.is_some() { 1 } else { self.lanes }),
        }
        self.addresses_of_row(&own);
        for number in 0..self.kernel.phases.len() {
            self.phase(number, &thread, &threads);
        }
        if self.meets() && (self.shared > 0 || !self.written.is_empty()) {
            self.meet();
        }
        self.body.line(&format!("add.s64 {at}, {at}, {stride}"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
        if let Some(kept) = self.row {
            self.finish_sums(kept, &thread);
        }
        self.body.line("ret");
    }

    /// The scatters that stay where they are from row to row, with the axis along which each moves.
    fn staying(&self) -> Vec<(AccessId, AxisId)> {
        let mut found = Vec::new();
        for phase in &self.kernel.phases {
            for inst in phase.code.insts().iter().filter(|inst| stays(self.kernel, phase, inst)) {
                found.extend(inst.access().zip(phase.axes.first().copied()));
            }
        }
        found
    }

    /// Sums of nothing.
    fn start_sums(&mut self, kept: KeptRow) {
        for (id, _) in self.staying() {
            for run in 0..kept.runs {
                let zeros = (0..kept.lanes).map(|_| self.body.constant(Class::B32, 0)).collect();
                self.sums.push((id, run, zeros));
            }
        }
    }

    /// Adds to what the block has summed up for an access; whether there is something.
    pub(crate) fn sum_up(&mut self, id: AccessId, values: &[Reg]) -> bool {
        let found = self.sums.iter().find(|(known, run, _)| *known == id && *run == self.run);
        let Some((_, _, sums)) = found.cloned() else { return false };
        for (sum, value) in sums.iter().zip(values) {
            self.body.line(&format!("add.rn.f32 {sum}, {sum}, {value}"));
        }
        true
    }

    /// Adds what the block has summed up to memory, which nobody else adds to.
    fn finish_sums(&mut self, kept: KeptRow, thread: &str) {
        let block = self.special("%ctaid.x");
        let first = self.body.op(Class::B64, "mul.lo.s64", &[thread, &kept.lanes.to_string()]);
        let outer = &self.kernel.rows[..self.kernel.rows.len().saturating_sub(1)];
        for (id, axis) in self.staying() {
            let count = self.param(Param::Count);
            self.decode(outer, &block, &count, 1);
            self.indices[axis.0 as usize] = Some(first.clone());
            let base = self.param(Param::Base(id));
            let address = self.moved(id, base, outer);
            let address = self.moved(id, address, &[axis]);
            for (_, run, sums) in self.sums.clone().into_iter().filter(|(known, ..)| *known == id) {
                let further = run as i64 * i64::from(kept.threads) * kept.lanes;
                let skip = kept.is_partial(run).then(|| self.body.label());
                if let Some(skip) = &skip {
                    let index = self.body.op(Class::B64, "add.s64", &[&first, &further.to_string()]);
                    let over = self.body.op(Class::Pred, "setp.ge.s64", &[&index, &kept.extent.to_string()]);
                    self.body.line(&format!("@{over} bra {skip}"));
                }
                for (lane, sum) in sums.iter().enumerate() {
                    let place = (further + lane as i64) * 4;
                    self.body.line(&format!("red.global.add.f32 [{address}+{place}], {sum}"));
                }
                if let Some(skip) = skip {
                    self.body.place(&skip);
                }
            }
        }
    }

    /// Whether threads of a block work on the same row.
    fn meets(&self) -> bool {
        matches!(self.mapping, Mapping::Blocks | Mapping::Columns)
    }

    /// The positions of a phase, dealt out to the warps of the block.
    fn shared_by_warps(&mut self, phase: &'k Phase) {
        let (Some((warp, warps)), Some(there)) = (self.warp.clone(), self.has_row.clone()) else { return };
        let done = self.body.label();
        self.body.line(&format!("@!{there} bra {done}"));
        self.strided(phase, &phase.axes, &warp, &warps);
        self.body.place(&done);
    }

    /// The positions of a phase along axes, from one on and so far apart: a few at a time as long as there are as many, so that
    /// their loads are under way together, then one by one.
    fn strided(&mut self, phase: &'k Phase, axes: &[AxisId], first: &str, apart: &str) {
        let mut count = self.body.constant(Class::B64, 1);
        for axis in axes {
            let extent = self.param(Param::Extent(*axis));
            count = self.body.op(Class::B64, "mul.lo.s64", &[&count, &extent]);
        }
        let at = self.body.op(Class::B64, "mov.b64", &[first]);
        let loads = self.early_loads(phase);
        let together = if loads.is_empty() { 1 } else { unrolled(phase) };
        if together > 1 {
            let (next, rest) = (self.body.label(), self.body.label());
            let ahead = self.body.op(Class::B64, "mul.lo.s64", &[apart, &(together - 1).to_string()]);
            let further = self.body.op(Class::B64, "add.s64", &[&ahead, apart]);
            self.body.place(&next);
            let last = self.body.op(Class::B64, "add.s64", &[&at, &ahead]);
            let over = self.body.op(Class::Pred, "setp.ge.s64", &[&last, &count]);
            self.body.line(&format!("@{over} bra {rest}"));
            let mut position = at.clone();
            let mut places = Vec::new();
            for run in 0..together {
                if run > 0 {
                    position = self.body.op(Class::B64, "add.s64", &[&position, apart]);
                }
                self.decode(axes, &position, &count, 1);
                places.push(axes.iter().map(|axis| self.indices[axis.0 as usize].clone()).collect::<Vec<_>>());
                self.run = run;
                for id in &loads {
                    let found = self.load(*id, phase);
                    self.preloaded.push((*id, run, found));
                }
            }
            for (run, place) in places.into_iter().enumerate() {
                axes.iter().zip(place).for_each(|(axis, index)| self.indices[axis.0 as usize] = index);
                self.run = run;
                self.position(phase);
            }
            self.run = 0;
            self.preloaded.clear();
            self.body.line(&format!("add.s64 {at}, {at}, {further}"));
            self.body.line(&format!("bra {next}"));
            self.body.place(&rest);
        }
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        let over = self.body.op(Class::Pred, "setp.ge.s64", &[&at, &count]);
        self.body.line(&format!("@{over} bra {done}"));
        self.decode(axes, &at, &count, 1);
        self.position(phase);
        self.body.line(&format!("add.s64 {at}, {at}, {apart}"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
    }

    /// The loads of a phase that may come before its other accesses: nothing in it writes where they read.
    fn early_loads(&self, phase: &Phase) -> Vec<AccessId> {
        let insts = phase.code.insts();
        let writes = |buffer: BufferId| {
            insts
                .iter()
                .any(|inst| inst.writes() && inst.access().is_some_and(|id| self.kernel.access(id).buffer == buffer))
        };
        let mut found = Vec::new();
        for (number, inst) in insts.iter().enumerate() {
            if let Inst::Load(id) = inst
                && self.uniform.get(number).is_none_or(Option::is_none)
                && !found.contains(id)
                && !writes(self.kernel.access(*id).buffer)
            {
                found.push(*id);
            }
        }
        found
    }

    /// Writes what is the same at all positions of a phase, once. What memory holds counts only where every row has
    /// positions.
    fn hoist(&mut self, phase: &Phase) {
        self.uniform = vec![None; phase.code.len()];
        if phase.axes.is_empty() {
            return;
        }
        let early = self.early_loads(phase);
        let mut same: Vec<bool> = Vec::with_capacity(phase.code.len());
        for inst in phase.code.insts() {
            let mut operands = true;
            inst.each_operand(|v| operands &= same[v.0 as usize]);
            same.push(match inst {
                Inst::Load(id) => {
                    let still = |axis: &AxisId| self.kernel.access(*id).step(*axis).as_int() == Some(0);
                    self.row.is_some() && early.contains(id) && phase.axes.iter().all(still)
                }
                Inst::Index(axis) => !phase.axes.contains(axis),
                Inst::Before(_) | Inst::Offset(_) | Inst::Bounded { .. } | Inst::Gather { .. } => false,
                other => operands && !other.writes(),
            });
        }
        // Literals and numbers that are there anyway are written where they are used, unless something else needs them.
        let is_there = |inst: &Inst| matches!(inst, Inst::Const(..) | Inst::Size(_) | Inst::Result(_) | Inst::Index(_));
        let mut needed: Vec<bool> =
            phase.code.insts().iter().zip(&same).map(|(inst, same)| *same && !is_there(inst)).collect();
        for (value, inst) in phase.code.iter().rev() {
            if needed[value.0 as usize] {
                inst.each_operand(|v| needed[v.0 as usize] = true);
            }
        }
        let lanes = std::mem::replace(&mut self.lanes, 1);
        for (value, inst) in phase.code.iter().filter(|(value, _)| needed[value.0 as usize]) {
            let register = match inst {
                Inst::Load(id) => self.loaded(*id, phase)[0].clone(),
                inst => {
                    let known = self.uniform.clone();
                    self.scalar(&phase.code, value, inst, 0, &|v| known[v.0 as usize].clone().unwrap_or_default())
                }
            };
            self.uniform[value.0 as usize] = Some(register);
        }
        self.lanes = lanes;
    }

    /// Tiles: the block reads what lies across with its lanes along it, hands it over through shared memory, and computes
    /// with its lanes along what is written.
    fn tiles(&mut self, tile: Tile) {
        let phase = &self.kernel.phases[0];
        let bounded = |inst: &Inst| matches!(inst, Inst::Bounded { .. });
        if phase.code.insts().iter().any(bounded) {
            self.healthy = Some(self.body.constant(Class::Pred, 1));
        }
        let (block, thread, blocks) = (self.special("%ctaid.x"), self.special("%tid.x"), self.special("%nctaid.x"));
        let lane = self.body.op(Class::B64, "and.b64", &[&thread, "31"]);
        let warp = self.body.op(Class::B64, "shr.u64", &[&thread, "5"]);
        let count = self.param(Param::Count);
        let whole = |emitter: &mut Self, axis: AxisId| {
            let extent = emitter.param(Param::Extent(axis));
            let more = emitter.body.op(Class::B64, "add.s64", &[&extent, &(tile.size - 1).to_string()]);
            (extent, emitter.body.op(Class::B64, "shr.u64", &[&more, &tile.size.trailing_zeros().to_string()]))
        };
        let ((along, columns), (across, rows)) = (whole(self, tile.along), whole(self, tile.across));
        let at = self.body.op(Class::B64, "mov.b64", &[&block]);
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        let over = self.body.op(Class::Pred, "setp.ge.u64", &[&at, &count]);
        self.body.line(&format!("@{over} bra {done}"));
        let (rest, column) = self.divide(&at, &columns, &count);
        let (rest, row) = self.divide(&rest, &rows, &count);
        let others: Vec<AxisId> = grid_axes(self.kernel, self.mapping)
            .into_iter()
            .filter(|axis| ![tile.along, tile.across].contains(axis))
            .collect();
        self.indices.fill(None);
        self.decode(&others, &rest, &count, 1);
        self.addresses_of_row(&at);
        let size = tile.size.to_string();
        let first_along = self.body.op(Class::B64, "mul.lo.s64", &[&column, &size]);
        let first_across = self.body.op(Class::B64, "mul.lo.s64", &[&row, &size]);
        let transposed = self.transposed(phase, tile);
        // Lines of the warp, and places of the lane in each: with the lanes along one axis, lines are along the other.
        let lines: Vec<Reg> = (0..tile.size as usize / TILE_WARPS)
            .map(|run| self.body.op(Class::B64, "add.s64", &[&warp, &(run * TILE_WARPS).to_string()]))
            .collect();
        let places: Vec<Reg> = (0..tile.size / 32)
            .map(|run| self.body.op(Class::B64, "add.s64", &[&lane, &(run * 32).to_string()]))
            .collect();
        let indices = |emitter: &mut Self, first: &str, extent: &str, offsets: &[Reg]| -> Vec<(Reg, Reg)> {
            let one = |offset: &Reg| {
                let index = emitter.body.op(Class::B64, "add.s64", &[first, offset]);
                let inside = emitter.body.op(Class::Pred, "setp.lt.s64", &[&index, extent]);
                (index, inside)
            };
            offsets.iter().map(one).collect()
        };
        let base = self.body.op(Class::B32, "mov.u32", &["shared"]);
        let mut sizes = Vec::new();
        for id in &transposed {
            sizes.push((self.shared, self.kernel.access(*id).dtype));
            self.shared += (tile.size * (tile.size + 1)) as usize * self.kernel.access(*id).dtype.size();
            self.shared = self.shared.next_multiple_of(8);
        }
        let place = |emitter: &mut Self, line: &str, column: &str, size: usize| {
            let at = emitter.body.op(Class::B64, "mad.lo.s64", &[line, &(tile.size + 1).to_string(), column]);
            let narrow = emitter.body.op(Class::B32, "cvt.u32.u64", &[&at]);
            emitter.body.op(Class::B32, "mad.lo.s32", &[&narrow, &size.to_string(), &base])
        };
        // Reading: lanes along what lies across.
        let read_across = indices(self, &first_across, &across, &places);
        let read_along = indices(self, &first_along, &along, &lines);
        let mut found = Vec::new();
        for ((index, there), line) in read_along.iter().zip(&lines) {
            for ((other, inside), column) in read_across.iter().zip(&places) {
                let both = self.body.op(Class::Pred, "and.pred", &[there, inside]);
                self.indices[tile.along.0 as usize] = Some(index.clone());
                self.indices[tile.across.0 as usize] = Some(other.clone());
                for (id, memory) in transposed.iter().zip(&sizes) {
                    let address = self.address(*id, phase);
                    found.push((self.raw_load(*id, &address, &both), line.clone(), column.clone(), *memory));
                }
            }
        }
        for (register, line, column, (offset, dtype)) in &found {
            let to = place(self, line, column, dtype.size());
            self.raw_to_shared(*dtype, &format!("{to}+{offset}"), register);
        }
        self.body.line("bar.sync 0");
        // Computing: lanes along what is written.
        let write_along = indices(self, &first_along, &along, &places);
        let write_across = indices(self, &first_across, &across, &lines);
        for ((index, there), line) in write_across.iter().zip(&lines) {
            for ((other, inside), column) in write_along.iter().zip(&places) {
                let both = self.body.op(Class::Pred, "and.pred", &[there, inside]);
                let skip = self.body.label();
                self.body.line(&format!("@!{both} bra {skip}"));
                self.indices[tile.across.0 as usize] = Some(index.clone());
                self.indices[tile.along.0 as usize] = Some(other.clone());
                for (id, (offset, dtype)) in transposed.iter().zip(&sizes) {
                    let from = place(self, column, line, dtype.size());
                    let value = self.shared_load(*dtype, &format!("{from}+{offset}"));
                    self.preloaded.push((*id, 0, vec![value]));
                }
                self.position(phase);
                self.preloaded.clear();
                self.body.place(&skip);
            }
        }
        self.body.line("bar.sync 0");
        self.body.line(&format!("add.s64 {at}, {at}, {blocks}"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
        self.body.line("ret");
    }

    /// The loads of a phase that go across.
    fn transposed(&self, phase: &Phase, tile: Tile) -> Vec<AccessId> {
        let mut found = Vec::new();
        for inst in phase.code.insts() {
            if let Inst::Load(id) = inst
                && tile.takes(self.kernel.access(*id))
                && !found.contains(id)
            {
                found.push(*id);
            }
        }
        found
    }

    /// What was loaded ahead of an access at the present run.
    pub(crate) fn loaded_ahead(&self, id: AccessId) -> Option<Vec<Reg>> {
        let found = self.preloaded.iter().find(|(known, run, _)| *known == id && *run == self.run);
        found.map(|(_, _, registers)| registers.clone())
    }

    /// All threads of the block wait for each other; what they wrote is there for all.
    pub(crate) fn meet(&mut self) {
        self.body.line("bar.sync 0");
        self.written.clear();
        self.read.clear();
        self.shared_is_read = false;
    }

    /// Takes a count of positions apart into the indices of axes. The last axis is counted in so many neighbours. Counts
    /// below 2³² are divided with 32 bits.
    fn decode(&mut self, axes: &[AxisId], position: &str, count: &str, lanes: usize) {
        let mut rest = position.to_owned();
        for (number, axis) in axes.iter().enumerate().rev() {
            let last = number + 1 == axes.len() && lanes > 1;
            let mut index = rest.clone();
            if number > 0 {
                let mut extent = self.param(Param::Extent(*axis));
                if last {
                    extent = self.body.op(Class::B64, "shr.u64", &[&extent, &lanes.trailing_zeros().to_string()]);
                }
                (rest, index) = self.divide(&rest, &extent, count);
            }
            if last {
                index = self.body.op(Class::B64, "shl.b64", &[&index, &lanes.trailing_zeros().to_string()]);
            }
            self.indices[axis.0 as usize] = Some(index);
        }
    }

    /// The quotient and the remainder of numbers that are at most a count.
    fn divide(&mut self, a: &str, b: &str, count: &str) -> (Reg, Reg) {
        let (quotient, rest) = (self.body.reg(Class::B64), self.body.reg(Class::B64));
        let (wide, joined) = (self.body.label(), self.body.label());
        let large = self.body.op(Class::Pred, "setp.gt.u64", &[count, "0xffffffff"]);
        self.body.line(&format!("@{large} bra {wide}"));
        let (x, y) = (self.body.op(Class::B32, "cvt.u32.u64", &[a]), self.body.op(Class::B32, "cvt.u32.u64", &[b]));
        let (q, r) = (self.body.op(Class::B32, "div.u32", &[&x, &y]), self.body.op(Class::B32, "rem.u32", &[&x, &y]));
        self.body.line(&format!("cvt.u64.u32 {quotient}, {q}"));
        self.body.line(&format!("cvt.u64.u32 {rest}, {r}"));
        self.body.line(&format!("bra {joined}"));
        self.body.place(&wide);
        self.body.line(&format!("div.u64 {quotient}, {a}, {b}"));
        self.body.line(&format!("rem.u64 {rest}, {a}, {b}"));
        self.body.place(&joined);
        (quotient, rest)
    }

    /// The accesses that a kernel makes.
    fn made(&self) -> Vec<AccessId> {
        let mut made = Vec::new();
        self.kernel.each_access(|id, _| {
            if !made.contains(&id) {
                made.push(id);
            }
        });
        made
    }

    fn addresses_of_row(&mut self, own: &str) {
        let axes = grid_axes(self.kernel, self.mapping);
        for id in self.made() {
            let mut address = self.param(Param::Base(id));
            if may_be_scratch(self.kernel, self.kernel.access(id).buffer) {
                let pitch = self.param(Param::Pitch(id));
                address = self.body.op(Class::B64, "mad.lo.s64", &[own, &pitch, &address]);
            }
            self.at_row[id.0 as usize] = Some(self.moved(id, address, &axes));
        }
    }

    /// An address moved along some axes.
    fn moved(&mut self, id: AccessId, mut address: Reg, axes: &[AxisId]) -> Reg {
        let access = self.kernel.access(id);
        let size = access.dtype.size() as i64;
        for axis in axes {
            let Some(index) = self.indices[axis.0 as usize].clone() else { continue };
            let bytes = match access.step(*axis).as_int() {
                Some(0) => continue,
                Some(step) => (step * size).to_string(),
                None => {
                    let step = self.param(Param::Step(id, *axis));
                    self.body.op(Class::B64, "mul.lo.s64", &[&step, &size.to_string()])
                }
            };
            address = self.body.op(Class::B64, "mad.lo.s64", &[&index, &bytes, &address]);
        }
        address
    }

    /// The address of an access at the present position.
    pub(crate) fn address(&mut self, id: AccessId, phase: &Phase) -> Reg {
        let row = self.at_row[id.0 as usize].clone().unwrap_or_default();
        if let Some(tile) = self.tile {
            return self.moved(id, row, &[tile.across, tile.along]);
        }
        let (Some(kept), [axis]) = (self.row, &phase.axes[..]) else {
            return if self.mapping == Mapping::Positions { row } else { self.moved(id, row, &phase.axes) };
        };
        if self.kernel.access(id).step(*axis).as_int() == Some(0) {
            return row;
        }
        let first = if let Some(first) = self.at_first_run[id.0 as usize].clone() {
            first
        } else {
            let first = self.moved(id, row, &phase.axes);
            self.at_first_run[id.0 as usize] = Some(first.clone());
            first
        };
        let further =
            self.run as i64 * i64::from(kept.threads) * kept.lanes * self.kernel.access(id).dtype.size() as i64;
        if further == 0 { first } else { format!("{first}+{further}") }
    }

    /// What registers hold of an access at the present run.
    pub(crate) fn kept(&self, id: AccessId) -> Option<Vec<Reg>> {
        let axis = self.lane_axis.filter(|_| self.row.is_some())?;
        let way = Way::of(self.kernel, id, axis);
        let found = self.kept.iter().find(|(known, run, _)| *run == self.run && *known == way);
        found.map(|(_, _, registers)| registers.clone())
    }

    /// Notes what registers hold of an access at the present run.
    pub(crate) fn keep(&mut self, id: AccessId, registers: &[Reg]) {
        if let Some(axis) = self.lane_axis.filter(|_| self.row.is_some()) {
            self.kept.push((Way::of(self.kernel, id, axis), self.run, registers.to_vec()));
        }
    }

    /// Forgets what registers hold of a buffer at the present run, and of other ways through it at all runs: an access is
    /// about to write there.
    pub(crate) fn forget(&mut self, id: AccessId) {
        let Some(axis) = self.lane_axis.filter(|_| self.row.is_some()) else {
            let buffer = self.kernel.access(id).buffer;
            self.kept.retain(|(way, ..)| way.access.buffer != buffer);
            return;
        };
        let (written, run) = (Way::of(self.kernel, id, axis), self.run);
        self.kept.retain(|(way, at, _)| way.access.buffer != written.access.buffer || (*way == written && *at != run));
    }

    /// Whether what a row puts aside in a buffer never has to be read from memory.
    pub(crate) fn stays_in_registers(&self, buffer: BufferId) -> bool {
        self.row.is_some() && stays_in_registers(self.kernel, buffer)
    }

    /// The positions of a phase, in runs of neighbours that each thread has in every phase.
    fn kept_row(&mut self, phase: &'k Phase, row: KeptRow, thread: &str) {
        let axis = phase.axes[0];
        let (lanes, axis_before) = (self.lanes, self.lane_axis.replace(axis));
        self.lanes = row.lanes as usize;
        let first = self.body.op(Class::B64, "mul.lo.s64", &[thread, &row.lanes.to_string()]);
        let loads: Vec<AccessId> = phase
            .code
            .insts()
            .iter()
            .filter_map(|inst| match inst {
                Inst::Load(id) => Some(*id),
                _ => None,
            })
            .filter(|id| {
                let buffer = self.kernel.access(*id).buffer;
                let stored = |inst: &Inst| {
                    matches!(inst, Inst::Store { access, .. } if self.kernel.access(*access).buffer == buffer)
                };
                let moves = self.kernel.rows.iter().any(|row| self.kernel.access(*id).step(*row).as_int() != Some(0));
                let still = self.kernel.access(*id).step(axis).as_int() == Some(0);
                moves && !still && !phase.code.insts().iter().any(stored)
            })
            .collect();
        // Loads of all runs come first, so that they are under way together. What all rows read is in the cache.
        for step in [Step::Load, Step::Compute] {
            for run in 0..row.runs {
                self.run = run;
                let further = run as i64 * i64::from(row.threads) * row.lanes;
                let index = self.body.op(Class::B64, "add.s64", &[&first, &further.to_string()]);
                let skip = row.is_partial(run).then(|| self.body.label());
                if let Some(skip) = &skip {
                    let over = self.body.op(Class::Pred, "setp.ge.s64", &[&index, &row.extent.to_string()]);
                    self.body.line(&format!("@{over} bra {skip}"));
                }
                // The address of the first run is that of the first index; see `address`.
                self.indices[axis.0 as usize] = Some(if step == Step::Load { first.clone() } else { index });
                match step {
                    Step::Load => loads.iter().for_each(|id| {
                        self.load(*id, phase);
                    }),
                    Step::Compute => self.position(phase),
                }
                if let Some(skip) = skip {
                    self.body.place(&skip);
                }
            }
        }
        self.run = 0;
        (self.lanes, self.lane_axis) = (lanes, axis_before);
    }

    fn phase(&mut self, number: usize, thread: &str, threads: &str) {
        let phase = &self.kernel.phases[number];
        if self.kernel.phases.len() > 1 {
            self.body.remark(&format!("phase {number}"));
        }
        if self.meets() {
            self.meet_before(phase);
        }
        self.accumulators =
            phase.reduces.iter().map(|reduce| Accumulator::start(&mut self.body, phase, reduce, self.row)).collect();
        self.reciprocals.clear();
        if self.mapping == Mapping::Positions {
            self.uniform.clear();
        } else {
            self.hoist(phase);
        }
        match self.mapping {
            Mapping::Positions => self.position(phase),
            Mapping::Rows => self.nested(phase, &phase.axes),
            Mapping::Columns => self.shared_by_warps(phase),
            Mapping::Blocks => match self.row {
                Some(row) if !phase.axes.is_empty() => self.kept_row(phase, row, thread),
                _ => self.dealt_out(phase, thread, threads),
            },
        }
        match self.mapping {
            _ if phase.reduces.is_empty() => {}
            Mapping::Blocks => self.join_block(thread, threads),
            Mapping::Columns => self.join_columns(thread),
            Mapping::Positions | Mapping::Rows => {}
        }
        for (index, reduce) in phase.reduces.iter().enumerate() {
            let value = self.accumulators[index].clone().finish(&mut self.body);
            if let Some(result) = self.results[reduce.result.0 as usize].clone() {
                let class = Accumulator::class_of_result(phase, reduce);
                self.body.line(&format!("mov.{} {result}, {value}", class.bits()));
            }
        }
    }

    /// Threads meet if the phase touches what others of them may have written, or writes what others may read.
    fn meet_before(&mut self, phase: &Phase) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for inst in phase.code.insts() {
            let Some(id) = inst.access().filter(|_| !matches!(inst, Inst::Offset(_))) else { continue };
            let buffer = self.kernel.access(id).buffer;
            if self.stays_in_registers(buffer) {
                continue;
            }
            if inst.writes() { writes.push(buffer) } else { reads.push(buffer) }
        }
        let conflict = reads.iter().chain(&writes).any(|buffer| self.written.contains(buffer))
            || writes.iter().any(|buffer| self.read.contains(buffer));
        if conflict {
            self.meet();
        }
        self.written.extend(writes);
        self.read.extend(reads);
    }

    /// The positions of a phase, one after the other, by the thread of the row.
    fn nested(&mut self, phase: &'k Phase, axes: &[AxisId]) {
        let Some((axis, inner)) = axes.split_first() else { return self.position(phase) };
        if inner.is_empty() {
            let (first, apart) = (self.body.constant(Class::B64, 0), self.body.constant(Class::B64, 1));
            return self.strided(phase, axes, &first, &apart);
        }
        let index = self.body.constant(Class::B64, 0);
        let extent = self.param(Param::Extent(*axis));
        self.indices[axis.0 as usize] = Some(index.clone());
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        let over = self.body.op(Class::Pred, "setp.ge.s64", &[&index, &extent]);
        self.body.line(&format!("@{over} bra {done}"));
        self.nested(phase, inner);
        self.body.line(&format!("add.s64 {index}, {index}, 1"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
    }

    /// The positions of a phase, dealt out to the threads of the block.
    fn dealt_out(&mut self, phase: &'k Phase, thread: &str, threads: &str) {
        let lanes = std::mem::replace(&mut self.lanes, 1);
        self.strided(phase, &phase.axes, thread, threads);
        self.lanes = lanes;
    }

    /// What a phase does at a position, or at a few neighbours.
    fn position(&mut self, phase: &Phase) {
        let values = self.code(phase);
        for (index, reduce) in phase.reduces.iter().enumerate() {
            let accumulator = self.accumulators[index].clone();
            let mut taken: Vec<(Reg, Option<Reg>)> = (0..self.lanes)
                .map(|lane| {
                    let value = |v: Val| values[v.0 as usize][lane].clone();
                    (value(reduce.value), reduce.index.map(value))
                })
                .collect();
            // Neighbours are added in pairs before they are widened, which costs more than adding.
            while accumulator.adds_neighbours() && taken.len() > 1 {
                let pairs = taken.chunks(2);
                taken = pairs
                    .map(|pair| (self.body.op(Class::B32, "add.rn.f32", &[&pair[0].0, &pair[1].0]), None))
                    .collect();
            }
            for (new, place) in taken {
                accumulator.take(&mut self.body, &new, place.as_deref());
            }
        }
    }
}
