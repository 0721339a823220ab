//! Small GEMMs in single precision: `out = lhs @ rhs + bias`, for matrices that are too small to fill a device with the tiles
//! of a vendor's library.
//!
//! A block has a tile of 32 by 32 results. It brings 128 steps of the inner dimension to shared memory at a time, while the
//! next ones are under way to registers. Its threads are four groups with a quarter of these steps each: a thread has 4 by 4
//! results, which the groups join in a fixed order at the end. So the latency of a step is paid once in 128, and few tiles
//! still keep many warps busy. Products are added by `fma.rn` in single precision, in an order that depends on the inner
//! dimension alone.
//!
//! Operands are read 16 bytes at a time along the dimension that is dense in memory, either one: [`Dense`] says which.

use crate::Launch;
use crate::emit::HEADER;
use crate::text::{Body, Class, Reg};

/// Results of a tile in each direction.
const TILE: i64 = 32;
/// Steps of the inner dimension that are in shared memory.
const STEPS: i64 = 128;
/// Threads of a block.
const THREADS: u32 = 256;
/// Groups that share the steps, and threads of one.
const GROUPS: i64 = 4;
const GROUP: i64 = 64;
/// Elements that are moved at once, and results of a thread in each direction.
const LANES: i64 = 4;
/// Elements from line to line in shared memory, where steps lie side by side and where lines do.
const PITCHES: [i64; 2] = [STEPS + LANES, TILE + LANES];
/// Bytes of an operand in shared memory.
const OPERAND_BYTES: i64 = 4 * STEPS * (TILE + LANES);
/// The entry.
const ENTRY: &str = "gemm";

/// Which dimension of an operand lies side by side in memory. A line is a row of the left or a column of the right operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dense {
    /// The inner dimension.
    Steps,
    /// The lines.
    Lines,
}

/// A kind of GEMM; sizes are arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// The left operand.
    pub lhs: Dense,
    /// The right operand.
    pub rhs: Dense,
    /// Whether a row is added to all rows of the result.
    pub bias: bool,
}

/// The sizes of a GEMM, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// How many GEMMs there are.
    pub batch: i64,
    /// Rows of the left operand, steps, columns of the right operand.
    pub rows: i64,
    /// The inner dimension.
    pub steps: i64,
    /// Columns of the right operand.
    pub columns: i64,
    /// From line to line, or from step to step, of the left operand: whichever does not lie side by side.
    pub lhs: i64,
    /// The same of the right operand.
    pub rhs: i64,
    /// From GEMM to GEMM: left, right, result.
    pub apart: [i64; 3],
}

/// The addresses of a GEMM.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// The left operand.
    pub lhs: u64,
    /// The right operand.
    pub rhs: u64,
    /// The row that is added.
    pub bias: u64,
    /// The result, dense.
    pub out: u64,
}

/// The parameters of the entry, in order.
const PARAMS: [&str; 13] = [
    "lhs",
    "rhs",
    "bias",
    "out",
    "rows",
    "steps",
    "columns",
    "lhs_pitch",
    "rhs_pitch",
    "lhs_apart",
    "rhs_apart",
    "out_apart",
    "tiles",
];

impl Sizes {
    /// How many tiles a result has in both directions.
    fn tiles(&self) -> (i64, i64) {
        ((self.rows + TILE - 1) / TILE, (self.columns + TILE - 1) / TILE)
    }
}

impl Gemm {
    /// Whether vectors of operands begin where vectors may: sizes are multiples of their length, and addresses too.
    pub fn takes(&self, sizes: &Sizes, addresses: &Addresses) -> bool {
        let dense = |dense: Dense, lines: i64| if dense == Dense::Steps { sizes.steps } else { lines };
        let all = [
            dense(self.lhs, sizes.rows),
            dense(self.rhs, sizes.columns),
            sizes.columns,
            sizes.lhs,
            sizes.rhs,
            sizes.apart[0],
            sizes.apart[1],
            sizes.apart[2],
        ];
        let bias = if self.bias { addresses.bias } else { 0 };
        all.iter().all(|size| size % LANES == 0)
            && [addresses.lhs, addresses.rhs, addresses.out, bias].iter().all(|address| address % 16 == 0)
    }

    /// The launch for sizes and addresses that it takes; nothing if there is no result.
    pub fn launch(&self, sizes: &Sizes, addresses: &Addresses) -> Option<Launch> {
        let (down, along) = sizes.tiles();
        let grid = u32::try_from(sizes.batch * down * along).ok().filter(|grid| *grid > 0)?;
        let bytes = |elements: i64| (elements * 4) as u64;
        let params = vec![
            addresses.lhs,
            addresses.rhs,
            addresses.bias,
            addresses.out,
            sizes.rows as u64,
            sizes.steps as u64,
            sizes.columns as u64,
            bytes(sizes.lhs),
            bytes(sizes.rhs),
            bytes(sizes.apart[0]),
            bytes(sizes.apart[1]),
            bytes(sizes.apart[2]),
            along as u64 | (down as u64) << 32,
        ];
        Some(Launch { entry: ENTRY.to_owned(), grid, block: THREADS, params, rows_at_once: 0 })
    }

    /// The module.
    pub fn text(&self) -> String {
        let mut writer = Writer { body: Body::default(), gemm: *self };
        writer.block();
        let params: Vec<String> = PARAMS.iter().map(|name| format!("    .param .u64 {name}")).collect();
        format!(
            "{HEADER}\n.visible .entry {ENTRY}(\n{}\n)\n.maxntid {THREADS}, 1, 1\n{{\n    .shared .align 16 .b8 shared[{}];\n{}}}\n",
            params.join(",\n"),
            2 * OPERAND_BYTES,
            writer.body.finish()
        )
    }

    /// The name of its entry.
    pub fn entry() -> &'static str {
        ENTRY
    }
}

/// Writes the entry.
struct Writer {
    body: Body,
    gemm: Gemm,
}

/// An operand while the entry is written.
struct Operand {
    dense: Dense,
    /// The address of the thread's first vector at the present steps, and of its place in shared memory.
    from: Reg,
    to: Reg,
    /// Bytes from the vectors of these steps to those of the next ones.
    further: Reg,
    /// Bytes from a vector of the thread to its next one.
    apart: Reg,
    /// The first step of the thread's vectors, and whether each of their lines is one of the operand.
    step: Reg,
    inside: Vec<Reg>,
    /// What is under way.
    ahead: Vec<[Reg; 4]>,
    /// Where the thread's part of a step is in shared memory.
    at: Reg,
}

impl Writer {
    fn b64(&mut self, name: &str, operands: &[&str]) -> Reg {
        self.body.op(Class::B64, name, operands)
    }

    fn b32(&mut self, name: &str, operands: &[&str]) -> Reg {
        self.body.op(Class::B32, name, operands)
    }

    fn param(&mut self, name: &str) -> Reg {
        self.b64("ld.param.u64", &[&format!("[{name}]")])
    }

    fn wide(&mut self, narrow: &str) -> Reg {
        self.b64("cvt.u64.u32", &[narrow])
    }

    fn block(&mut self) {
        let block = self.b32("mov.u32", &["%ctaid.x"]);
        let thread = self.b32("mov.u32", &["%tid.x"]);
        let tiles = self.param("tiles");
        let along = self.b32("cvt.u32.u64", &[&tiles]);
        let down = self.b64("shr.u64", &[&tiles, "32"]);
        let down = self.b32("cvt.u32.u64", &[&down]);
        let rest = self.b32("div.u32", &[&block, &along]);
        let column = self.b32("rem.u32", &[&block, &along]);
        let number = self.b32("div.u32", &[&rest, &down]);
        let row = self.b32("rem.u32", &[&rest, &down]);
        let [number, row, column] = [&number, &row, &column].map(|index| self.wide(index));
        let first_row = self.b64("mul.lo.s64", &[&row, &TILE.to_string()]);
        let first_column = self.b64("mul.lo.s64", &[&column, &TILE.to_string()]);
        let (rows, columns, steps) = (self.param("rows"), self.param("columns"), self.param("steps"));
        // The place of the thread in its group: its lines are at these places.
        let group = self.b32("shr.u32", &[&thread, &GROUP.trailing_zeros().to_string()]);
        let place = self.b32("and.b32", &[&thread, &(GROUP - 1).to_string()]);
        let across = self.b32("and.b32", &[&place, "7"]);
        let deep = self.b32("shr.u32", &[&place, "3"]);
        let base = self.b32("mov.u32", &["shared"]);
        let other = self.b32("add.s32", &[&base, &OPERAND_BYTES.to_string()]);
        let mut operands = [
            self.operand(("lhs", self.gemm.lhs), (&number, &first_row, &rows), &thread, (&base, &group, &deep)),
            self.operand(
                ("rhs", self.gemm.rhs),
                (&number, &first_column, &columns),
                &thread,
                (&other, &group, &across),
            ),
        ];
        let sums: Vec<Reg> = (0..LANES * LANES).map(|_| self.body.constant(Class::B32, 0)).collect();
        let at = self.body.constant(Class::B64, 0);
        operands.iter_mut().for_each(|operand| self.fetch(operand, &steps));
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        for operand in &operands {
            for (number, vector) in operand.ahead.iter().enumerate() {
                let offset = Self::shared_offset(operand.dense, number);
                self.body.line(&format!("st.shared.v4.b32 [{}+{offset}], {{{}}}", operand.to, vector.join(", ")));
            }
        }
        self.body.line("bar.sync 0");
        self.body.line(&format!("add.s64 {at}, {at}, {STEPS}"));
        let last = self.body.label();
        let over = self.body.op(Class::Pred, "setp.ge.s64", &[&at, &steps]);
        self.body.line(&format!("@{over} bra {last}"));
        for operand in &mut operands {
            let Operand { from, further, step, .. } = operand;
            self.body.line(&format!("add.s64 {from}, {from}, {further}"));
            self.body.line(&format!("add.s64 {step}, {step}, {STEPS}"));
            self.fetch(operand, &steps);
        }
        self.body.place(&last);
        self.multiply(&operands, &sums);
        self.body.line("bar.sync 0");
        self.body.line(&format!("@{over} bra {done}"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
        self.join(&sums, (&base, &thread, &group), (&across, &deep));
        self.finish(&thread, &base, (&number, &first_row, &first_column), (&rows, &columns));
        self.body.line("ret");
    }

    /// How many vectors of an operand a thread brings, and how many lines or steps apart.
    fn vectors(dense: Dense) -> (i64, i64) {
        let across = if dense == Dense::Steps { STEPS / LANES } else { TILE / LANES };
        (STEPS * TILE / LANES / i64::from(THREADS), i64::from(THREADS) / across)
    }

    /// Where the vector of a number lies behind the first one of a thread in shared memory, in bytes.
    fn shared_offset(dense: Dense, number: usize) -> i64 {
        let (_, apart) = Self::vectors(dense);
        number as i64 * apart * PITCHES[usize::from(dense == Dense::Lines)] * 4
    }

    /// Where a thread begins with an operand.
    fn operand(
        &mut self,
        (name, dense): (&str, Dense),
        (number, first, lines): (&str, &str, &str),
        thread: &str,
        (base, group, place): (&str, &str, &str),
    ) -> Operand {
        let across = if dense == Dense::Steps { STEPS / LANES } else { TILE / LANES };
        let along = self.b32("and.b32", &[thread, &(across - 1).to_string()]);
        let deep = self.b32("shr.u32", &[thread, &across.trailing_zeros().to_string()]);
        let [along_wide, deep_wide] = [&along, &deep].map(|index| self.wide(index));
        let along_first = self.b64("mul.lo.s64", &[&along_wide, &LANES.to_string()]);
        let (address, pitch) = (self.param(name), self.param(&format!("{name}_pitch")));
        let gemms = self.param(&format!("{name}_apart"));
        let address = self.b64("mad.lo.s64", &[number, &gemms, &address]);
        let (count, apart) = Self::vectors(dense);
        let (line, step) = match dense {
            Dense::Steps => (self.b64("add.s64", &[first, &deep_wide]), along_first.clone()),
            Dense::Lines => (self.b64("add.s64", &[first, &along_first]), deep_wide.clone()),
        };
        let (outer, inner) = if dense == Dense::Steps { (&line, &step) } else { (&step, &line) };
        let address = self.b64("mad.lo.s64", &[outer, &pitch, &address]);
        let from = self.b64("mad.lo.s64", &[inner, "4", &address]);
        let further = match dense {
            Dense::Steps => self.body.constant(Class::B64, STEPS as u64 * 4),
            Dense::Lines => self.b64("mul.lo.s64", &[&pitch, &STEPS.to_string()]),
        };
        let apart_bytes = self.b64("mul.lo.s64", &[&pitch, &apart.to_string()]);
        let mut inside = Vec::new();
        for number in 0..count {
            let at = match dense {
                Dense::Steps => self.b64("add.s64", &[&line, &(number * apart).to_string()]),
                Dense::Lines => line.clone(),
            };
            inside.push(self.body.op(Class::Pred, "setp.lt.s64", &[&at, lines]));
        }
        let pitch = PITCHES[usize::from(dense == Dense::Lines)];
        let to = self.b32("mad.lo.s32", &[&deep, &(pitch * 4).to_string(), base]);
        let to = self.b32("mad.lo.s32", &[&along, "16", &to]);
        // A group begins at its quarter of the steps.
        let steps = STEPS / GROUPS;
        let own = match dense {
            Dense::Steps => self.b32("mul.lo.s32", &[place, &(pitch * 4).to_string()]),
            Dense::Lines => self.b32("mul.lo.s32", &[place, "16"]),
        };
        let quarter = if dense == Dense::Steps { steps * 4 } else { steps * pitch * 4 };
        let own = self.b32("mad.lo.s32", &[group, &quarter.to_string(), &own]);
        let at = self.b32("add.s32", &[&own, base]);
        let ahead = (0..count).map(|_| std::array::from_fn(|_| self.body.reg(Class::B32))).collect();
        Operand { dense, from, to, further, apart: apart_bytes, step, inside, ahead, at }
    }

    /// Brings vectors of the present steps on their way; those outside of the operand are zero.
    fn fetch(&mut self, operand: &mut Operand, steps: &str) {
        let (_, apart) = Self::vectors(operand.dense);
        let mut address = operand.from.clone();
        for (number, vector) in operand.ahead.iter().enumerate() {
            let step = match operand.dense {
                Dense::Steps => operand.step.clone(),
                Dense::Lines => self.b64("add.s64", &[&operand.step, &(number as i64 * apart).to_string()]),
            };
            let there = self.body.op(Class::Pred, "setp.lt.s64", &[&step, steps]);
            let there = self.body.op(Class::Pred, "and.pred", &[&there, &operand.inside[number]]);
            for register in vector {
                self.body.line(&format!("mov.b32 {register}, 0x00000000"));
            }
            self.body.line(&format!("@{there} ld.global.v4.b32 {{{}}}, [{address}]", vector.join(", ")));
            if number + 1 < operand.ahead.len() {
                address = self.b64("add.s64", &[&address, &operand.apart]);
            }
        }
    }

    /// Four values of each of four steps from an operand: by line, then by step.
    fn taken(&mut self, operand: &Operand, first: i64) -> Vec<Vec<Reg>> {
        let mut found = vec![Vec::new(); LANES as usize];
        for number in 0..LANES {
            let registers: Vec<Reg> = (0..LANES).map(|_| self.body.reg(Class::B32)).collect();
            let offset = match operand.dense {
                // The lines of a thread are eight apart, so that the lanes of a warp are in different banks.
                Dense::Steps => number * (TILE / LANES) * PITCHES[0] * 4 + first * 4,
                Dense::Lines => (first + number) * PITCHES[1] * 4,
            };
            self.body.line(&format!("ld.shared.v4.b32 {{{}}}, [{}+{offset}]", registers.join(", "), operand.at));
            match operand.dense {
                Dense::Steps => found[number as usize] = registers,
                Dense::Lines => found.iter_mut().zip(registers).for_each(|(line, register)| line.push(register)),
            }
        }
        found
    }

    fn multiply(&mut self, operands: &[Operand; 2], sums: &[Reg]) {
        for first in (0..STEPS / GROUPS).step_by(LANES as usize) {
            let (lhs, rhs) = (self.taken(&operands[0], first), self.taken(&operands[1], first));
            for step in 0..LANES as usize {
                for (row, a) in lhs.iter().enumerate() {
                    for (column, b) in rhs.iter().enumerate() {
                        let sum = &sums[row * LANES as usize + column];
                        self.body.line(&format!("fma.rn.f32 {sum}, {}, {}, {sum}", a[step], b[step]));
                    }
                }
            }
        }
    }

    /// Hands the results of each group to shared memory, one behind the other, in the order of rows and columns.
    fn join(&mut self, sums: &[Reg], (base, _, group): (&str, &str, &str), (across, deep): (&str, &str)) {
        let place = |dense: Dense, number: i64| match dense {
            Dense::Steps => (1, number * (TILE / LANES)),
            Dense::Lines => (LANES, number),
        };
        let own = self.b32("mad.lo.s32", &[group, &(TILE * TILE * 4).to_string(), base]);
        let (row_step, _) = place(self.gemm.lhs, 0);
        let (column_step, _) = place(self.gemm.rhs, 0);
        let own = self.b32("mad.lo.s32", &[deep, &(row_step * TILE * 4).to_string(), &own]);
        let own = self.b32("mad.lo.s32", &[across, &(column_step * 4).to_string(), &own]);
        for row in 0..LANES {
            for column in 0..LANES {
                let (_, down) = place(self.gemm.lhs, row);
                let (_, along) = place(self.gemm.rhs, column);
                let sum = &sums[(row * LANES + column) as usize];
                self.body.line(&format!("st.shared.b32 [{own}+{}], {sum}", (down * TILE + along) * 4));
            }
        }
        self.body.line("bar.sync 0");
    }

    /// Adds up what the groups have, and the bias, and writes the tile.
    fn finish(
        &mut self,
        thread: &str,
        base: &str,
        (number, first_row, first_column): (&str, &str, &str),
        (rows, columns): (&str, &str),
    ) {
        let own = self.b32("mad.lo.s32", &[thread, "16", base]);
        let mut parts = Vec::new();
        for group in 0..GROUPS {
            let registers: Vec<Reg> = (0..LANES).map(|_| self.body.reg(Class::B32)).collect();
            let offset = group * TILE * TILE * 4;
            self.body.line(&format!("ld.shared.v4.b32 {{{}}}, [{own}+{offset}]", registers.join(", ")));
            parts.push(registers);
        }
        let across = self.b32("and.b32", &[thread, "7"]);
        let deep = self.b32("shr.u32", &[thread, "3"]);
        let [across, deep] = [&across, &deep].map(|index| self.wide(index));
        let row = self.b64("add.s64", &[first_row, &deep]);
        let column = self.b64("mad.lo.s64", &[&across, &LANES.to_string(), first_column]);
        let inside = self.body.op(Class::Pred, "setp.lt.s64", &[&row, rows]);
        let there = self.body.op(Class::Pred, "setp.lt.s64", &[&column, columns]);
        let inside = self.body.op(Class::Pred, "and.pred", &[&inside, &there]);
        let mut sums: Vec<Reg> = (0..LANES as usize)
            .map(|lane| {
                let low = self.b32("add.rn.f32", &[&parts[0][lane], &parts[1][lane]]);
                let high = self.b32("add.rn.f32", &[&parts[2][lane], &parts[3][lane]]);
                self.b32("add.rn.f32", &[&low, &high])
            })
            .collect();
        if self.gemm.bias {
            let bias = self.param("bias");
            let from = self.b64("mad.lo.s64", &[&column, "4", &bias]);
            let added: Vec<Reg> = (0..LANES).map(|_| self.body.constant(Class::B32, 0)).collect();
            self.body.line(&format!("@{inside} ld.global.v4.b32 {{{}}}, [{from}]", added.join(", ")));
            sums = sums.iter().zip(&added).map(|(sum, more)| self.b32("add.rn.f32", &[sum, more])).collect();
        }
        let (out, apart) = (self.param("out"), self.param("out_apart"));
        let out = self.b64("mad.lo.s64", &[number, &apart, &out]);
        let place = self.b64("mad.lo.s64", &[&row, columns, &column]);
        let to = self.b64("mad.lo.s64", &[&place, "4", &out]);
        self.body.line(&format!("@{inside} st.global.v4.b32 [{to}], {{{}}}", sums.join(", ")));
    }
}
