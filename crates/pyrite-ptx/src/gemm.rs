//! GEMMs in single precision, `out = lhs @ rhs + bias`, and convolutions as GEMMs, for sizes that are too small to fill a device
//! with the tiles of a vendor's library.
//!
//! A block has a tile of results. It brings some steps of the inner dimension to shared memory at a time, while the next ones are
//! under way to registers. Its threads are four groups with a quarter of these steps each: a thread has 4 or 8 results in each
//! direction ([`Tile`]), which the groups join in a fixed order at the end. So the latency of a step is paid once in many, and
//! few tiles still keep many warps busy. Products are added by `fma.rn` in single precision, in an order that depends on the
//! inner dimension and the tile alone.
//!
//! Operands are read 16 bytes at a time along the dimension that is dense in memory, either one: [`Dense`] says which. The right
//! operand of a convolution is never in memory: its columns are pixels of the result, its steps are the elements of a pixel's
//! window ([`Windows`]), which are read from the images where they are needed.

use crate::Launch;
use crate::emit::HEADER;
use crate::text::{Body, Class, Reg};

/// Threads of a block.
const THREADS: u32 = 256;
/// Groups that share the steps, and threads of one: so many by so many.
const GROUPS: i64 = 4;
const GROUP: i64 = SIDE * SIDE;
const SIDE: i64 = 8;
/// Elements that are moved at once.
const LANES: i64 = 4;
/// The most bytes of shared memory that an entry has without asking the driver for more.
const MOST_SHARED: i64 = 48 << 10;
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

/// How many results a thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// 4 by 4: a block has 32 by 32.
    Small,
    /// 8 by 4: a block has 64 by 32.
    Tall,
    /// 8 by 8: a block has 64 by 64.
    Large,
}

impl Tile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Tall, Self::Large];

    /// Results of a thread: down and along.
    fn of_thread(self) -> (i64, i64) {
        match self {
            Self::Small => (4, 4),
            Self::Tall => (8, 4),
            Self::Large => (8, 8),
        }
    }

    /// Results of a block: down and along.
    pub fn of_block(self) -> (i64, i64) {
        let (down, along) = self.of_thread();
        (SIDE * down, SIDE * along)
    }

    /// Steps of the inner dimension that are in shared memory.
    fn steps(self) -> i64 {
        if self == Self::Small { 128 } else { 64 }
    }

    /// Elements from row to row of a tile of results in shared memory: rows of four threads are in different banks.
    fn pitch(self) -> i64 {
        self.of_block().1 + SIDE
    }

    /// Bytes of a tile of results.
    fn bytes(self) -> i64 {
        4 * self.of_block().0 * self.pitch()
    }
}

/// The windows of a convolution; sizes of images are arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    /// How many rows of pixels a window has.
    pub height: u32,
    /// How many columns.
    pub width: u32,
}

/// A kind of GEMM; sizes are arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// The left operand.
    pub lhs: Dense,
    /// The right operand; [`Dense::Lines`] for a convolution.
    pub rhs: Dense,
    /// Whether a row is added to all rows of the result.
    pub bias: bool,
    /// How results are shared out.
    pub tile: Tile,
    /// Whose windows are the right operand, if it is a convolution.
    pub windows: Option<Windows>,
}

/// The sizes of a GEMM, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// The images of a convolution. Each GEMM of it has its part of the steps, one behind the other.
    pub images: Images,
}

/// The images of a convolution: dense, channel by channel, as its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// Pixels of an image that is read: how many rows and columns.
    pub read: [i64; 2],
    /// Pixels of a result.
    pub made: [i64; 2],
    /// How far windows are apart.
    pub stride: [i64; 2],
    /// How many pixels there are around an image, all zero.
    pub padding: [i64; 2],
    /// How many channels an image that is read has.
    pub channels: i64,
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
/// Those of a convolution behind them: two numbers of 32 bits each.
const IMAGE_PARAMS: [&str; 5] = ["read", "made", "stride", "padding", "channels"];

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
        let pixels = sizes.images.made[0] * sizes.images.made[1];
        // The elements of images are counted with 32 bits.
        let images = sizes.columns / pixels.max(1);
        let read = images * sizes.images.channels * sizes.images.read[0] * sizes.images.read[1];
        let fits = self.windows.is_none() || (pixels % LANES == 0 && read < 1 << 30 && sizes.columns < 1 << 30);
        fits && all.iter().all(|size| size % LANES == 0)
            && [addresses.lhs, addresses.out, bias].iter().all(|address| address % 16 == 0)
            && addresses.rhs.is_multiple_of(if self.windows.is_some() { 4 } else { 16 })
    }

    /// The launch for sizes and addresses that it takes; nothing if there is no result.
    pub fn launch(&self, sizes: &Sizes, addresses: &Addresses) -> Option<Launch> {
        let (height, width) = self.tile.of_block();
        let (down, along) = ((sizes.rows + height - 1) / height, (sizes.columns + width - 1) / width);
        let grid = u32::try_from(sizes.batch * down * along).ok().filter(|grid| *grid > 0)?;
        let bytes = |elements: i64| (elements * 4) as u64;
        let pair = |[low, high]: [i64; 2]| low as u64 & 0xffff_ffff | (high as u64) << 32;
        let mut params = vec![
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
            pair([along, down]),
        ];
        if self.windows.is_some() {
            let Images { read, made, stride, padding, channels } = sizes.images;
            params.extend([read, made, stride, padding, [channels, 0]].map(pair));
        }
        Some(Launch { entry: ENTRY.to_owned(), grid, block: THREADS, params, rows_at_once: 0 })
    }

    /// The module.
    pub fn text(&self) -> String {
        let mut writer = Writer { body: Body::default(), gemm: *self, images: None };
        writer.block();
        let more = if self.windows.is_some() { &IMAGE_PARAMS[..] } else { &[] };
        let params: Vec<String> = PARAMS.iter().chain(more).map(|name| format!("    .param .u64 {name}")).collect();
        format!(
            "{HEADER}\n.visible .entry {ENTRY}(\n{}\n)\n.maxntid {THREADS}, 1, 1\n{{\n    .shared .align 16 .b8 shared[{}];\n{}}}\n",
            params.join(",\n"),
            self.shared_bytes(),
            writer.body.finish()
        )
    }

    /// The name of its entry.
    pub fn entry() -> &'static str {
        ENTRY
    }

    /// How many bytes of shared memory an operand has, and how many elements it is from line to line, or from step to step.
    fn in_shared(&self, dense: Dense, lines: i64) -> (i64, i64) {
        let steps = self.tile.steps();
        match dense {
            Dense::Steps => (4 * lines * (steps + LANES), steps + LANES),
            Dense::Lines => (4 * steps * (lines + LANES), lines + LANES),
        }
    }

    /// Bytes of shared memory of both operands, which results have later.
    fn operand_bytes(&self) -> [i64; 2] {
        let (down, along) = self.tile.of_block();
        [self.in_shared(self.lhs, down).0, self.in_shared(self.rhs, along).0]
    }

    /// How many tiles of results shared memory holds at the end.
    fn slots(&self) -> i64 {
        if GROUPS * self.tile.bytes() <= MOST_SHARED { GROUPS } else { GROUPS / 2 }
    }

    fn shared_bytes(&self) -> i64 {
        self.operand_bytes().iter().sum::<i64>().max(self.slots() * self.tile.bytes())
    }
}

/// Writes the entry.
struct Writer {
    body: Body,
    gemm: Gemm,
    images: Option<Pixels>,
}

/// The pixels whose windows a thread reads.
struct Pixels {
    /// The element of the images where the window of each pixel begins, and its row and column there.
    windows: Vec<[Reg; 3]>,
    /// The address of the images.
    base: Reg,
    /// How many rows and columns an image has, and how many pixels.
    height: Reg,
    width: Reg,
    size: Reg,
    /// The first step of the GEMM among those of the convolution.
    first: Reg,
}

/// An operand while the entry is written.
struct Operand {
    dense: Dense,
    /// How many lines a tile has, and how many of them are a thread's.
    lines: i64,
    of_thread: i64,
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
    /// Whether it is the windows of a convolution.
    is_windows: bool,
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

    /// A parameter of two numbers of 32 bits.
    fn pair(&mut self, name: &str) -> (Reg, Reg) {
        let both = self.param(name);
        let high = self.b64("shr.u64", &[&both, "32"]);
        (self.b32("cvt.u32.u64", &[&both]), self.b32("cvt.u32.u64", &[&high]))
    }

    fn wide(&mut self, narrow: &str) -> Reg {
        self.b64("cvt.u64.u32", &[narrow])
    }

    fn block(&mut self) {
        let block = self.b32("mov.u32", &["%ctaid.x"]);
        let thread = self.b32("mov.u32", &["%tid.x"]);
        let (along, down) = self.pair("tiles");
        let rest = self.b32("div.u32", &[&block, &along]);
        let column = self.b32("rem.u32", &[&block, &along]);
        let number = self.b32("div.u32", &[&rest, &down]);
        let row = self.b32("rem.u32", &[&rest, &down]);
        let [number, row, column] = [&number, &row, &column].map(|index| self.wide(index));
        let (height, width) = self.gemm.tile.of_block();
        let first_row = self.b64("mul.lo.s64", &[&row, &height.to_string()]);
        let first_column = self.b64("mul.lo.s64", &[&column, &width.to_string()]);
        let (rows, columns, steps) = (self.param("rows"), self.param("columns"), self.param("steps"));
        // The place of the thread in its group: its lines are at these places.
        let group = self.b32("shr.u32", &[&thread, &GROUP.trailing_zeros().to_string()]);
        let place = self.b32("and.b32", &[&thread, &(GROUP - 1).to_string()]);
        let across = self.b32("and.b32", &[&place, &(SIDE - 1).to_string()]);
        let deep = self.b32("shr.u32", &[&place, &SIDE.trailing_zeros().to_string()]);
        let base = self.b32("mov.u32", &["shared"]);
        let other = self.b32("add.s32", &[&base, &self.gemm.operand_bytes()[0].to_string()]);
        let mut operands = [
            self.operand(("lhs", self.gemm.lhs), (&number, &first_row, &rows), &thread, (&base, &group, &deep)),
            self.operand(
                ("rhs", self.gemm.rhs),
                (&number, &first_column, &columns),
                &thread,
                (&other, &group, &across),
            ),
        ];
        if self.gemm.windows.is_some() {
            self.images = Some(self.pixels(&thread, &first_column, (&number, &steps)));
        }
        let (down, along) = self.gemm.tile.of_thread();
        let sums: Vec<Reg> = (0..down * along).map(|_| self.body.constant(Class::B32, 0)).collect();
        let at = self.body.constant(Class::B64, 0);
        operands.iter_mut().for_each(|operand| self.fetch(operand, &steps));
        let (next, done) = (self.body.label(), self.body.label());
        self.body.place(&next);
        for operand in &operands {
            for (number, vector) in operand.ahead.iter().enumerate() {
                let offset = self.shared_offset(operand, number);
                self.body.line(&format!("st.shared.v4.b32 [{}+{offset}], {{{}}}", operand.to, vector.join(", ")));
            }
        }
        self.body.line("bar.sync 0");
        let some = self.gemm.tile.steps();
        self.body.line(&format!("add.s64 {at}, {at}, {some}"));
        let last = self.body.label();
        let over = self.body.op(Class::Pred, "setp.ge.s64", &[&at, &steps]);
        self.body.line(&format!("@{over} bra {last}"));
        for operand in &mut operands {
            let Operand { from, further, step, .. } = operand;
            self.body.line(&format!("add.s64 {from}, {from}, {further}"));
            self.body.line(&format!("add.s64 {step}, {step}, {some}"));
            self.fetch(operand, &steps);
        }
        self.body.place(&last);
        self.multiply(&operands, &sums);
        self.body.line("bar.sync 0");
        self.body.line(&format!("@{over} bra {done}"));
        self.body.line(&format!("bra {next}"));
        self.body.place(&done);
        self.join(&operands, &sums, (&base, &group, &place), (&across, &deep));
        self.finish(&thread, &base, (&number, &first_row, &first_column), (&rows, &columns));
        self.body.line("ret");
    }

    /// How many vectors of an operand a thread brings, how many lines or steps apart, and how many threads are side by side.
    fn vectors(&self, dense: Dense, lines: i64) -> (i64, i64, i64) {
        let steps = self.gemm.tile.steps();
        let across = if dense == Dense::Steps { steps / LANES } else { lines / LANES };
        (steps * lines / LANES / i64::from(THREADS), i64::from(THREADS) / across, across)
    }

    /// Where the vector of a number lies behind the first one of a thread in shared memory, in bytes.
    fn shared_offset(&self, operand: &Operand, number: usize) -> i64 {
        let (_, apart, _) = self.vectors(operand.dense, operand.lines);
        let (_, pitch) = self.gemm.in_shared(operand.dense, operand.lines);
        number as i64 * apart * pitch * 4
    }

    /// Where a thread begins with an operand.
    fn operand(
        &mut self,
        (name, dense): (&str, Dense),
        (number, first, lines): (&str, &str, &str),
        thread: &str,
        (base, group, place): (&str, &str, &str),
    ) -> Operand {
        let ((down, right), (tall, broad)) = (self.gemm.tile.of_thread(), self.gemm.tile.of_block());
        let (of_thread, of_block) = if name == "lhs" { (down, tall) } else { (right, broad) };
        let (count, apart, across) = self.vectors(dense, of_block);
        let along = self.b32("and.b32", &[thread, &(across - 1).to_string()]);
        let deep = self.b32("shr.u32", &[thread, &across.trailing_zeros().to_string()]);
        let [along_wide, deep_wide] = [&along, &deep].map(|index| self.wide(index));
        let along_first = self.b64("mul.lo.s64", &[&along_wide, &LANES.to_string()]);
        let (address, pitch) = (self.param(name), self.param(&format!("{name}_pitch")));
        let gemms = self.param(&format!("{name}_apart"));
        let address = self.b64("mad.lo.s64", &[number, &gemms, &address]);
        let (line, step) = match dense {
            Dense::Steps => (self.b64("add.s64", &[first, &deep_wide]), along_first.clone()),
            Dense::Lines => (self.b64("add.s64", &[first, &along_first]), deep_wide.clone()),
        };
        let (outer, inner) = if dense == Dense::Steps { (&line, &step) } else { (&step, &line) };
        let address = self.b64("mad.lo.s64", &[outer, &pitch, &address]);
        let from = self.b64("mad.lo.s64", &[inner, "4", &address]);
        let steps = self.gemm.tile.steps();
        let further = match dense {
            Dense::Steps => self.body.constant(Class::B64, steps as u64 * 4),
            Dense::Lines => self.b64("mul.lo.s64", &[&pitch, &steps.to_string()]),
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
        let (_, pitch) = self.gemm.in_shared(dense, of_block);
        let to = self.b32("mad.lo.s32", &[&deep, &(pitch * 4).to_string(), base]);
        let to = self.b32("mad.lo.s32", &[&along, "16", &to]);
        // A group begins at its quarter of the steps.
        let quarter = steps / GROUPS;
        let own = match dense {
            Dense::Steps => self.b32("mul.lo.s32", &[place, &(pitch * 4).to_string()]),
            Dense::Lines => self.b32("mul.lo.s32", &[place, "16"]),
        };
        let quarter = if dense == Dense::Steps { quarter * 4 } else { quarter * pitch * 4 };
        let own = self.b32("mad.lo.s32", &[group, &quarter.to_string(), &own]);
        let at = self.b32("add.s32", &[&own, base]);
        let ahead = (0..count).map(|_| std::array::from_fn(|_| self.body.reg(Class::B32))).collect();
        let is_windows = name == "rhs" && self.gemm.windows.is_some();
        Operand {
            dense,
            lines: of_block,
            of_thread,
            from,
            to,
            further,
            apart: apart_bytes,
            step,
            inside,
            ahead,
            at,
            is_windows,
        }
    }

    /// The pixels whose windows a thread reads: four neighbours of one image.
    fn pixels(&mut self, thread: &str, first: &str, (number, steps): (&str, &str)) -> Pixels {
        let (_, _, across) = self.vectors(Dense::Lines, self.gemm.tile.of_block().1);
        let along = self.b32("and.b32", &[thread, &(across - 1).to_string()]);
        let first = self.b32("cvt.u32.u64", &[first]);
        let first = self.b32("mad.lo.s32", &[&along, &LANES.to_string(), &first]);
        let (made_height, made_width) = self.pair("made");
        let ((height, width), (down, right)) = (self.pair("read"), self.pair("stride"));
        let ((above, before), (channels, _)) = (self.pair("padding"), self.pair("channels"));
        let made = self.b32("mul.lo.s32", &[&made_height, &made_width]);
        let size = self.b32("mul.lo.s32", &[&height, &width]);
        let image = self.b32("div.u32", &[&first, &made]);
        let pixel = self.b32("rem.u32", &[&first, &made]);
        let image_size = self.b32("mul.lo.s32", &[&size, &channels]);
        let begin = self.b32("mul.lo.s32", &[&image, &image_size]);
        let mut windows = Vec::new();
        for lane in 0..LANES {
            let own = self.b32("add.s32", &[&pixel, &lane.to_string()]);
            let (row, column) = (self.b32("div.u32", &[&own, &made_width]), self.b32("rem.u32", &[&own, &made_width]));
            let row = self.b32("mul.lo.s32", &[&row, &down]);
            let row = self.b32("sub.s32", &[&row, &above]);
            let column = self.b32("mul.lo.s32", &[&column, &right]);
            let column = self.b32("sub.s32", &[&column, &before]);
            let place = self.b32("mad.lo.s32", &[&row, &width, &column]);
            windows.push([self.b32("add.s32", &[&place, &begin]), row, column]);
        }
        let first = self.b64("mul.lo.s64", &[number, steps]);
        Pixels { windows, base: self.param("rhs"), height, width, size, first: self.b32("cvt.u32.u64", &[&first]) }
    }

    /// Brings vectors of the present steps on their way; those outside of the operand are zero.
    fn fetch(&mut self, operand: &mut Operand, steps: &str) {
        let (_, apart, _) = self.vectors(operand.dense, operand.lines);
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
            if operand.is_windows {
                self.fetch_windows(vector, &step, &there);
                continue;
            }
            self.body.line(&format!("@{there} ld.global.v4.b32 {{{}}}, [{address}]", vector.join(", ")));
            if number + 1 < operand.ahead.len() {
                address = self.b64("add.s64", &[&address, &operand.apart]);
            }
        }
    }

    /// Brings one element of each of four windows on its way; those around the image are zero.
    fn fetch_windows(&mut self, vector: &[Reg; 4], step: &str, there: &str) {
        let (Some(pixels), Some(windows)) = (self.images.take(), self.gemm.windows) else { return };
        let step = self.b32("cvt.u32.u64", &[step]);
        let step = self.b32("add.s32", &[&step, &pixels.first]);
        let (height, width) = (windows.height, windows.width);
        let (channel, place) = if height * width == 1 {
            (step, None)
        } else {
            let size = (height * width).to_string();
            let (channel, rest) = (self.b32("div.u32", &[&step, &size]), self.b32("rem.u32", &[&step, &size]));
            let (row, column) =
                (self.b32("div.u32", &[&rest, &width.to_string()]), self.b32("rem.u32", &[&rest, &width.to_string()]));
            (channel, Some((row, column)))
        };
        let mut offset = self.b32("mul.lo.s32", &[&channel, &pixels.size]);
        if let Some((row, column)) = &place {
            let own = self.b32("mad.lo.s32", &[row, &pixels.width, column]);
            offset = self.b32("add.s32", &[&offset, &own]);
        }
        for (register, [window, row, column]) in vector.iter().zip(&pixels.windows) {
            let (mut y, mut x) = (row.clone(), column.clone());
            if let Some((down, right)) = &place {
                (y, x) = (self.b32("add.s32", &[&y, down]), self.b32("add.s32", &[&x, right]));
            }
            // What is above or before the image is a large number without sign.
            let inside = self.body.op(Class::Pred, "setp.lt.u32", &[&y, &pixels.height]);
            let right = self.body.op(Class::Pred, "setp.lt.u32", &[&x, &pixels.width]);
            let inside = self.body.op(Class::Pred, "and.pred", &[&inside, &right]);
            let inside = self.body.op(Class::Pred, "and.pred", &[&inside, there]);
            let element = self.b32("add.s32", &[window, &offset]);
            let wide = self.wide(&element);
            let address = self.b64("mad.lo.s64", &[&wide, "4", &pixels.base]);
            self.body.line(&format!("@{inside} ld.global.b32 {register}, [{address}]"));
        }
        self.images = Some(pixels);
    }

    /// Where the line of a number of a thread is: so many for each place of threads, and so many further.
    fn line_of(dense: Dense, number: i64) -> (i64, i64) {
        match dense {
            // The lines of a thread are apart, so that the lanes of a warp are in different banks.
            Dense::Steps => (1, number * SIDE),
            Dense::Lines => (LANES, number / LANES * SIDE * LANES + number % LANES),
        }
    }

    /// The values of each of four steps from an operand: by line, then by step.
    fn taken(&mut self, operand: &Operand, first: i64) -> Vec<Vec<Reg>> {
        let mut found = vec![Vec::new(); operand.of_thread as usize];
        let (_, pitch) = self.gemm.in_shared(operand.dense, operand.lines);
        let mut load = |offset: i64| {
            let registers: Vec<Reg> = (0..LANES).map(|_| self.body.reg(Class::B32)).collect();
            self.body.line(&format!("ld.shared.v4.b32 {{{}}}, [{}+{offset}]", registers.join(", "), operand.at));
            registers
        };
        match operand.dense {
            Dense::Steps => {
                for (number, line) in found.iter_mut().enumerate() {
                    *line = load(number as i64 * SIDE * pitch * 4 + first * 4);
                }
            }
            Dense::Lines => {
                for step in 0..LANES {
                    for (number, lines) in found.chunks_mut(LANES as usize).enumerate() {
                        let registers = load((first + step) * pitch * 4 + number as i64 * SIDE * LANES * 4);
                        lines.iter_mut().zip(registers).for_each(|(line, register)| line.push(register));
                    }
                }
            }
        }
        found
    }

    fn multiply(&mut self, operands: &[Operand; 2], sums: &[Reg]) {
        let (_, along) = self.gemm.tile.of_thread();
        for first in (0..self.gemm.tile.steps() / GROUPS).step_by(LANES as usize) {
            let (lhs, rhs) = (self.taken(&operands[0], first), self.taken(&operands[1], first));
            for step in 0..LANES as usize {
                for (row, a) in lhs.iter().enumerate() {
                    for (column, b) in rhs.iter().enumerate() {
                        let sum = &sums[row * along as usize + column];
                        self.body.line(&format!("fma.rn.f32 {sum}, {}, {}, {sum}", a[step], b[step]));
                    }
                }
            }
        }
    }

    /// Hands the results of the groups to shared memory, one tile behind the other, in the order of rows and columns. Where there is
    /// room for half of the groups only, those hand theirs to the others first.
    fn join(
        &mut self,
        operands: &[Operand; 2],
        sums: &[Reg],
        (base, group, place): (&str, &str, &str),
        (across, deep): (&str, &str),
    ) {
        let (slots, bytes) = (self.gemm.slots(), self.gemm.tile.bytes());
        let (_, along) = self.gemm.tile.of_thread();
        let pitch = self.gemm.tile.pitch();
        let mut writes = None;
        if slots < GROUPS {
            let gives = self.body.op(Class::Pred, "setp.ge.u32", &[group, &slots.to_string()]);
            let slot = self.b32("and.b32", &[group, &(slots - 1).to_string()]);
            let own = self.b32("mad.lo.s32", &[&slot, &bytes.to_string(), base]);
            let own = self.b32("mad.lo.s32", &[place, "16", &own]);
            for (number, part) in sums.chunks(LANES as usize).enumerate() {
                let to = format!("[{own}+{}]", number as i64 * GROUP * 16);
                self.body.line(&format!("@{gives} st.shared.v4.b32 {to}, {{{}}}", part.join(", ")));
            }
            self.body.line("bar.sync 0");
            for (number, part) in sums.chunks(LANES as usize).enumerate() {
                let other: Vec<Reg> = part.iter().map(|_| self.body.constant(Class::B32, 0)).collect();
                let from = format!("[{own}+{}]", number as i64 * GROUP * 16);
                self.body.line(&format!("@!{gives} ld.shared.v4.b32 {{{}}}, {from}", other.join(", ")));
                for (sum, more) in part.iter().zip(&other) {
                    self.body.line(&format!("add.rn.f32 {sum}, {sum}, {more}"));
                }
            }
            self.body.line("bar.sync 0");
            writes = Some(gives);
        }
        let own = self.b32("mad.lo.s32", &[group, &bytes.to_string(), base]);
        let (row_step, _) = Self::line_of(operands[0].dense, 0);
        let (column_step, _) = Self::line_of(operands[1].dense, 0);
        let own = self.b32("mad.lo.s32", &[deep, &(row_step * pitch * 4).to_string(), &own]);
        let own = self.b32("mad.lo.s32", &[across, &(column_step * 4).to_string(), &own]);
        let guard = writes.map(|gives| format!("@!{gives} ")).unwrap_or_default();
        // Columns that lie side by side are moved together.
        let together = if operands[1].dense == Dense::Lines { LANES } else { 1 };
        for (number, part) in sums.chunks(together as usize).enumerate() {
            let number = number as i64 * together;
            let (_, down) = Self::line_of(operands[0].dense, number / along);
            let (_, right) = Self::line_of(operands[1].dense, number % along);
            let to = format!("[{own}+{}]", (down * pitch + right) * 4);
            self.body.line(&match part {
                [one] => format!("{guard}st.shared.b32 {to}, {one}"),
                _ => format!("{guard}st.shared.v4.b32 {to}, {{{}}}", part.join(", ")),
            });
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
        let (height, width) = self.gemm.tile.of_block();
        let (out, apart) = (self.param("out"), self.param("out_apart"));
        let out = self.b64("mad.lo.s64", &[number, &apart, &out]);
        let across = self.b32("and.b32", &[thread, &(width / LANES - 1).to_string()]);
        let deep = self.b32("shr.u32", &[thread, &(width / LANES).trailing_zeros().to_string()]);
        let pitch_bytes = self.gemm.tile.pitch() * 4;
        let own = self.b32("mad.lo.s32", &[&deep, &pitch_bytes.to_string(), base]);
        let own = self.b32("mad.lo.s32", &[&across, "16", &own]);
        let [across, deep] = [&across, &deep].map(|index| self.wide(index));
        let first_row = self.b64("add.s64", &[first_row, &deep]);
        let column = self.b64("mad.lo.s64", &[&across, &LANES.to_string(), first_column]);
        let there = self.body.op(Class::Pred, "setp.lt.s64", &[&column, columns]);
        let added: Option<Vec<Reg>> = self.gemm.bias.then(|| {
            let bias = self.param("bias");
            let from = self.b64("mad.lo.s64", &[&column, "4", &bias]);
            let added: Vec<Reg> = (0..LANES).map(|_| self.body.constant(Class::B32, 0)).collect();
            self.body.line(&format!("@{there} ld.global.v4.b32 {{{}}}, [{from}]", added.join(", ")));
            added
        });
        // Where the column is in a row of the result, and how long a row is; a convolution has an image of all rows behind the other.
        let (column, pitch) = if self.gemm.windows.is_some() {
            let (down, along) = self.pair("made");
            let pixels = self.b32("mul.lo.s32", &[&down, &along]);
            let narrow = self.b32("cvt.u32.u64", &[&column]);
            let (image, pixel) = (self.b32("div.u32", &[&narrow, &pixels]), self.b32("rem.u32", &[&narrow, &pixels]));
            let [image, pixel, pixels] = [&image, &pixel, &pixels].map(|index| self.wide(index));
            let before = self.b64("mul.lo.s64", &[&image, rows]);
            (self.b64("mad.lo.s64", &[&before, &pixels, &pixel]), pixels)
        } else {
            (column, columns.to_owned())
        };
        let apart = i64::from(THREADS) * LANES / width;
        for run in 0..height / apart {
            let mut parts = Vec::new();
            for slot in 0..self.gemm.slots() {
                let registers: Vec<Reg> = (0..LANES).map(|_| self.body.reg(Class::B32)).collect();
                let offset = slot * self.gemm.tile.bytes() + run * apart * pitch_bytes;
                self.body.line(&format!("ld.shared.v4.b32 {{{}}}, [{own}+{offset}]", registers.join(", ")));
                parts.push(registers);
            }
            while parts.len() > 1 {
                let pairs: Vec<Vec<Reg>> = parts
                    .chunks(2)
                    .map(|pair| pair[0].iter().zip(&pair[1]).map(|(a, b)| self.b32("add.rn.f32", &[a, b])).collect())
                    .collect();
                parts = pairs;
            }
            let mut sums = parts.remove(0);
            if let Some(added) = &added {
                sums = sums.iter().zip(added).map(|(sum, more)| self.b32("add.rn.f32", &[sum, more])).collect();
            }
            let row = self.b64("add.s64", &[&first_row, &(run * apart).to_string()]);
            let inside = self.body.op(Class::Pred, "setp.lt.s64", &[&row, rows]);
            let inside = self.body.op(Class::Pred, "and.pred", &[&inside, &there]);
            let place = self.b64("mad.lo.s64", &[&row, &pitch, &column]);
            let to = self.b64("mad.lo.s64", &[&place, "4", &out]);
            self.body.line(&format!("@{inside} st.global.v4.b32 [{to}], {{{}}}", sums.join(", ")));
        }
    }
}
