//! Scheduled programs: they read back as they print, and the memory checker finds every planted mistake of a planner and
//! nothing in programs that are right.

use pyrite_codegen::decisions::Decisions;
use pyrite_codegen::passes::{self, Machine, schedule};
use pyrite_codegen::schedule::{Op, Reuse, Schedule, Statement, memory, parse};
use pyrite_compiler::Options;
use pyrite_compiler::aot::{Stages, partition_by_min_cut};
use pyrite_ir::Graph;
use pyrite_loops::BufferId;
use pyrite_ops::registry;
use pyrite_passes::{Gate, Table};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_testing::filetest::printed_and_read;
use pyrite_testing::random;

fn scheduled(graph: &Graph) -> Schedule {
    schedule(graph, registry(), &mut Decisions::new(&mut Gate::open()), &mut |_, _| ()).unwrap()
}

fn read(text: &str) -> Graph {
    let text = format!("import torch\nclass Repro(torch.nn.Module):\n{text}");
    read_text(&text, None, registry(), &ReadOptions::default()).unwrap().graph
}

/// `relu(x @ w) * 2`, twice, with a sum between: a GEMM with an epilogue, kernels, reuse.
fn layers() -> Schedule {
    let graph = read(
        r#"
    def forward(self, x: "f32[64, 64]", w: "f32[64, 64]"):
        mm = torch.ops.aten.mm.default(x, w)
        relu = torch.ops.aten.relu.default(mm)
        sum_1 = torch.ops.aten.sum.dim_IntList(relu, [0], True)
        sub = torch.ops.aten.sub.Tensor(relu, sum_1)
        mm_1 = torch.ops.aten.mm.default(sub, w)
        exp = torch.ops.aten.exp.default(mm_1)
        sort = torch.ops.aten.sort.default(exp)
        getitem = sort[0]
        add = torch.ops.aten.add.Tensor(getitem, exp)
        return (add,)
"#,
    );
    scheduled(&graph)
}

/// Attention: one fused bmm with blocks.
fn attention() -> Schedule {
    let graph = read(
        r#"
    def forward(self, q: "f32[4, 40, 16]", k: "f32[4, 16, 40]", v: "f32[4, 40, 16]"):
        bmm = torch.ops.aten.bmm.default(q, k)
        mul = torch.ops.aten.mul.Tensor(bmm, 0.25)
        amax = torch.ops.aten.amax.default(mul, [-1], True)
        sub = torch.ops.aten.sub.Tensor(mul, amax)
        exp = torch.ops.aten.exp.default(sub)
        sum_1 = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
        div = torch.ops.aten.div.Tensor(exp, sum_1)
        bmm_1 = torch.ops.aten.bmm.default(div, v)
        return (bmm_1,)
"#,
    );
    scheduled(&graph)
}

/// The statement that this holds for.
fn find(schedule: &Schedule, wanted: impl Fn(&Statement) -> bool) -> usize {
    schedule.statements.iter().position(wanted).unwrap_or_else(|| panic!("no such statement in\n{schedule}"))
}

#[track_caller]
fn is_found(mistake: &str, schedule: &Schedule) {
    assert!(!memory::check(schedule).is_empty(), "{mistake} was not found in\n{schedule}");
}

#[test]
fn the_planted_mistakes_of_a_planner_are_found() {
    assert_eq!(memory::check(&layers()), [], "{}", layers());
    assert_eq!(memory::check(&attention()), [], "{}", attention());
    let frees = |statement: &Statement| !statement.frees.is_empty();

    let mut schedule = layers();
    let at = find(&schedule, frees);
    let lost = schedule.statements[at].frees.len();
    schedule.statements[at].frees.clear();
    assert!(lost > 0);
    let computed = find(&schedule, |s| s.op.reads().iter().any(|b| b.0 as usize >= schedule.inputs.len()));
    schedule.statements[computed].frees.clear();
    is_found("a buffer that is never freed", &schedule);

    let mut schedule = layers();
    let user = find(&schedule, |s| matches!(&s.op, Op::Call(_)));
    let read = schedule.statements[user].op.reads()[0];
    let writer = find(&schedule, |s| s.op.writes().contains(&read));
    schedule.statements[writer].frees.push(read);
    is_found("a lifetime that ends too early", &schedule);

    let mut schedule = layers();
    let at = find(&schedule, |s| !s.reuses.is_empty());
    let dead = schedule.statements[at].reuses[0].dead;
    schedule.statements[at].frees.retain(|buffer| *buffer != dead);
    is_found("the memory of a buffer that lives on", &schedule);

    let mut schedule = layers();
    let at = find(&schedule, |s| !s.reuses.is_empty());
    let dead = schedule.statements[at].reuses[0].dead;
    schedule.buffers[dead.0 as usize].elements = 7.into();
    is_found("the memory of a buffer of another size", &schedule);

    let mut schedule = layers();
    let at = find(&schedule, |s| !s.reuses.is_empty());
    let again = schedule.statements[at].reuses[0];
    schedule.statements[at].reuses.push(again);
    is_found("memory that is given twice", &schedule);

    let mut schedule = layers();
    let sum = find(&schedule, |s| matches!(&s.op, Op::Loop(kernel) if !kernel.results.is_empty()));
    let (read, written) = (schedule.statements[sum].op.reads(), schedule.statements[sum].op.writes());
    schedule.buffers[written[0].0 as usize].elements = schedule.buffers[read[0].0 as usize].elements.clone();
    schedule.statements[sum].frees.push(read[0]);
    schedule.statements[sum].reuses.push(Reuse { dead: read[0], result: written[0] });
    is_found("a result over what other rows still read", &schedule);

    let mut schedule = layers();
    let call = find(&schedule, |s| matches!(&s.op, Op::Call(_)));
    schedule.statements.remove(call);
    is_found("a read of what nothing writes", &schedule);

    let mut schedule = layers();
    let call = find(&schedule, |s| matches!(&s.op, Op::Call(_)));
    schedule.statements.swap(call - 1, call);
    is_found("a read before the write", &schedule);

    let mut schedule = layers();
    let last = schedule.statements.len() - 1;
    let returned = schedule.statements[last].op.writes()[0];
    schedule.statements[last].frees.push(returned);
    is_found("an output that is freed", &schedule);

    let mut schedule = layers();
    let last = schedule.statements.len() - 1;
    let freed = schedule.statements.iter().flat_map(|s| s.frees.clone()).next().unwrap();
    schedule.statements[last].frees.push(freed);
    is_found("a buffer that is freed twice", &schedule);

    let mut schedule = attention();
    let fused = find(&schedule, |s| matches!(&s.op, Op::Bmm(fused) if !fused.blocks.is_empty()));
    let Op::Bmm(bmm) = &schedule.statements[fused].op else { panic!("a bmm") };
    let block = bmm.blocks[0].buffer;
    schedule.statements[fused].frees.retain(|buffer| *buffer != block);
    is_found("a block of what lives on", &schedule);

    let mut schedule = attention();
    let Op::Bmm(bmm) = &mut schedule.statements[fused].op else { panic!("a bmm") };
    assert!(bmm.blocks.len() > 1, "scores and weights");
    bmm.blocks[0].over = Some(1);
    is_found("a block over one that comes later", &schedule);

    let mut schedule = layers();
    let at = find(&schedule, |s| !s.reuses.is_empty());
    let result = schedule.statements[at].reuses[0].result;
    schedule.statements[at].reuses[0].dead = BufferId(1);
    schedule.statements[at].frees.push(BufferId(1));
    assert_ne!(result, BufferId(1));
    is_found("a result over a weight that a GEMM still reads", &schedule);
}

/// `PYRITE_RANDOM_SCHEDULES=100000` is what the nightly run asks for.
#[test]
fn random_graphs_have_sound_memory_plans_and_read_back_after_every_pass() {
    let count: u64 = std::env::var("PYRITE_RANDOM_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let mut statements = 0;
    for number in 0..count {
        let graph = random::graph(number).graph;
        let options = Options::default();
        let Ok(stages) = Stages::of(&graph, &partition_by_min_cut(), Table::Loops, &options) else { continue };
        let mut graphs = vec![&stages.functional.graph];
        graphs.extend(stages.partition.iter().flat_map(|partition| [&partition.forward, &partition.backward]));
        let machines = [Machine::Cpu, Machine::Gpu];
        for (graph, machine) in graphs.into_iter().flat_map(|graph| machines.map(|machine| (graph, machine))) {
            let mut problem = None;
            let mut look = |pass: &'static str, schedule: &Schedule| {
                if let (None, Err(error)) = (&problem, printed_and_read(schedule)) {
                    problem = Some(format!("after {pass}: {error}"));
                }
            };
            let (mut gate, registry) = (Gate::open(), registry());
            let done = passes::schedule_for(machine, graph, registry, &mut Decisions::new(&mut gate), &mut look);
            let Ok(done) = done else { continue };
            statements += done.statements.len();
            assert_eq!(problem, None, "graph {number} for {machine:?}");
            assert_eq!(memory::check(&done), [], "graph {number} for {machine:?}:\n{done}");
        }
    }
    assert!(statements > count as usize, "only {statements} statements in {count} graphs");
}

#[test]
fn a_text_that_is_no_schedule_is_refused_with_its_line() {
    let text = layers().to_string();
    let parsed = |text: &str| parse::parse(text, registry()).map(|_| ()).unwrap_err().to_string();
    assert!(parsed("").contains("return"), "an empty text");
    assert_eq!(parsed("loop a\n  axis 3\nreturn None"), "line 1: expected `axes`");
    assert!(parsed(&text.replace(" = aten.sort", " = aten.sorted")).contains("there is no operator"));
    assert!(parsed(&text.replace("phase i", "phase i9")).contains("does not exist"));
    for at in (0..text.len()).step_by(7).filter(|at| text.is_char_boundary(*at)) {
        let _ = parse::parse(&text[..at], registry());
    }
}
