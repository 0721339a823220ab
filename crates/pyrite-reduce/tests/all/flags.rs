//! Flags and settings: what does not matter goes, what matters stays.

use pyrite_ir::{Graph, Kind, Switch, Target, Value};
use pyrite_ops::registry;
use pyrite_oracle::{Class, Signature, Stage, Verdict};
use pyrite_reader::{ReadOptions, read_text};
use pyrite_reduce::{Candidate, Options, PASSES, Silent, necessary, reduce};
use pyrite_tensor::Tensor;

/// A program with a region of autocast, one without gradients, and an input that wants them.
fn program() -> Candidate {
    let text = "class Repro(torch.nn.Module):\n    def forward(self, x : \"f32[3, 3]\", y : \"f32[3, 3]\"):\n        \
                a = torch.sin(x)\n        \
                enter = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n        \
                b = a @ y\n        c = torch.tanh(b)\n        \
                leave = torch.amp.autocast_mode._exit_autocast(enter)\n        \
                off = torch._C._set_grad_enabled(False)\n        d = torch.cos(a)\n        \
                on = torch._C._set_grad_enabled(True)\n        e = torch.relu(d)\n        \
                f = torch.exp(c)\n        return (e, f)\n";
    let mut graph = read_text(text, None, registry(), &ReadOptions::default()).expect("a program").graph;
    let ids: Vec<_> = graph.placeholders().map(|(id, node)| (id, node.meta.clone())).collect();
    for (id, meta) in ids {
        let Some(Value::Tensor(mut meta)) = meta else { panic!("an annotation") };
        meta.requires_grad = true;
        graph.set_meta(id, Value::Tensor(meta));
    }
    let input = |seed: f32| Value::Tensor(Tensor::from_slice(&[seed; 9], &[3, 3]));
    Candidate { graph, inputs: vec![input(0.5), input(0.25)], seed: 0 }
}

fn called<'a>(graph: &'a Graph, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is = move |kind: &Kind| matches!(kind, Kind::Call(Target::Op(op)) if op.name().contains(name));
    graph.nodes().enumerate().filter(move |(_, (_, node))| is(&node.kind)).map(|(at, _)| at)
}

fn switches(graph: &Graph) -> Vec<(usize, Switch)> {
    graph.nodes().enumerate().filter_map(|(at, (_, node))| Some((at, Switch::of(node)?))).collect()
}

/// Whether an operator is called inside a region of autocast.
fn under_autocast(graph: &Graph, name: &str) -> bool {
    let found = switches(graph);
    called(graph, name).any(|at| {
        let before = |wanted: &dyn Fn(Switch) -> bool| found.iter().filter(|(p, s)| *p < at && wanted(*s)).count();
        before(&|s| matches!(s, Switch::EnterAutocast(_))) > before(&|s| s == Switch::ExitAutocast)
    })
}

/// Whether an operator is called where there are no gradients.
fn without_gradients(graph: &Graph, name: &str) -> bool {
    let found = switches(graph);
    called(graph, name).any(|at| {
        let last = found.iter().rfind(|(p, s)| *p < at && matches!(s, Switch::Grad(_)));
        matches!(last, Some((_, Switch::Grad(false))))
    })
}

fn reduced(fails: &(dyn Fn(&Candidate) -> bool + Sync)) -> Candidate {
    let oracle = |c: &Candidate| {
        if fails(c) { Verdict::Fail(Signature::new(Stage::Forward, Class::Value)) } else { Verdict::Pass }
    };
    let run = |jobs| reduce(program(), &oracle, Options { jobs, ..Options::default() }, &mut Silent);
    let found = run(1).expect("the start fails");
    assert_eq!(found.minimal_for.len(), PASSES.len());
    assert!(found.best.is_program());
    assert_eq!(run(3).expect("the start fails").best.key(), found.best.key());
    found.best
}

#[test]
fn flags_that_do_not_matter_go() {
    let best = reduced(&|c| called(&c.graph, "aten.relu").next().is_some());
    assert_eq!((best.size().flags, best.size().calls), (0, 1));
}

#[test]
fn a_region_of_autocast_that_matters_stays_closed_around_its_call() {
    let best = reduced(&|c| under_autocast(&c.graph, "aten.tanh"));
    assert_eq!((best.size().flags, best.size().calls), (2, 3));
    assert!(under_autocast(&best.graph, "aten.tanh"));
}

#[test]
fn gradients_are_switched_on_again_where_they_were() {
    let best = reduced(&|c| without_gradients(&c.graph, "aten.cos"));
    let states: Vec<Switch> = switches(&best.graph).into_iter().map(|(_, switch)| switch).collect();
    assert_eq!(states, [Switch::Grad(false), Switch::Grad(true)]);
}

#[test]
fn gradients_of_inputs_stay_where_they_matter() {
    let wants = |c: &Candidate| {
        let wanting = |meta: &Option<Value<_>>| matches!(meta, Some(Value::Tensor(m)) if { let m: &pyrite_ir::Meta = m; m.requires_grad });
        c.graph.placeholders().filter(|(_, node)| wanting(&node.meta)).count()
    };
    let best = reduced(&|c| wants(c) > 0 && called(&c.graph, "aten.sin").next().is_some());
    assert_eq!((wants(&best), best.inputs.len()), (1, 1));
}

#[test]
fn settings_are_necessary_each_by_itself() {
    for count in 0..9u32 {
        let all: Vec<u32> = (0..count).collect();
        for needed in 0..1u32 << count {
            let mut asked = 0;
            let mut fails = |some: &[u32]| {
                asked += 1;
                all.iter().filter(|n| needed >> **n & 1 == 1).all(|n| some.contains(n))
            };
            let kept = necessary(&all, &mut fails);
            let expected: Vec<u32> = all.iter().copied().filter(|n| needed >> n & 1 == 1).collect();
            assert_eq!(kept, expected);
            if needed == 0 && count > 0 {
                assert_eq!(asked, 1, "none at all is asked about first");
            }
        }
    }
    // Either of two is enough.
    let kept = necessary(&[1, 2, 3, 4], &mut |some: &[i32]| some.contains(&2) || some.contains(&4));
    assert_eq!(kept.len(), 1);
}
