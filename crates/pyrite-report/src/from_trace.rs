//! A run from its trace.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use pyrite_trace::event::{
    Divergence as Parting, GraphDump, Kernel, KernelTime, Mark, NodeRow, Run as Begun, Size, StageMark,
};
use pyrite_trace::{Event, Record, Stage};

use crate::ReportError;
use crate::folder::{file_at, shortened};
use crate::modules;
use crate::view::{
    Divergence, Found, GraphView, KernelView, NodeView, OfGraph, Repro, RunView, SourceLine, SourceView, StepView,
};

/// The file of the program that a debugging session is about.
const PROGRAM: &str = "program.py";
/// The step that follows the search.
const PROOF: &str = "prove";
/// How many lines are shown around one that is named.
const AROUND: u32 = 6;

/// Reads the trace of a folder.
pub fn read(folder: &Path) -> Result<RunView, ReportError> {
    let records = pyrite_trace::read(folder)?;
    let mut run = RunView::default();
    let mut partings = Vec::new();
    let mut steps = Steps::default();
    let mut told = Vec::new();
    // How long before the trace the session began.
    let mut earlier = 0.0_f64;
    for Record { time, stage, graph, event } in records {
        steps.last = steps.last.max(time);
        let stage_name = stage.map(|stage| stage.name().to_owned());
        match event {
            Event::Run(begun) => tell_run(&mut run, &begun),
            Event::Stage(mark) => steps.mark(time, stage, graph, &mark),
            Event::Graph(dump) => add_graph(&mut run, stage_name, graph, dump),
            Event::Artifact(file) => {
                let path = path_of(stage, graph.as_deref(), &file.file);
                put_file(&mut run, &path, file.text);
            }
            Event::Break(found) => run.breaks.push(found),
            Event::Recompile(found) => run.recompiles.push(found),
            Event::Guard(what) => run.guards.push(OfGraph { graph, what }),
            Event::Kernel(kernel) => add_kernel(&mut run, graph, kernel),
            Event::KernelTime(time) => add_time(&mut run, graph, time),
            Event::Divergence(parting) => partings.push((graph, parting)),
            Event::Minify(step) => run.minify.push(step),
            Event::Finding(found) => {
                told.push((found.step.clone(), found.seconds));
                // What is told as it is found has both clocks; what is told later shows less.
                earlier = earlier.max(found.seconds - time);
                run.findings.push(Found { step: found.step, text: found.text });
            }
            Event::Repro(repro) => {
                run.signature = Some(repro.signature).filter(|signature| !signature.is_empty());
                let name =
                    Path::new(&repro.path).strip_prefix(folder).map_or(repro.path.clone(), |p| p.display().to_string());
                run.repro = Some(Repro { path: name, text: repro.text, proven: Some(repro.proven) });
            }
            Event::Log(_) => {}
        }
    }
    run.stages = steps.done();
    if !told.is_empty() {
        let session = session_steps(&told, run.minify.last().map(|step| step.seconds));
        within(session, &mut run.stages, earlier);
    }
    begin_with_the_program(&mut run);
    for (graph, parting) in partings {
        attach(&mut run, graph.as_deref(), parting);
    }
    run.sources = sources(&run, folder);
    run.title = match &run.signature {
        Some(signature) => signature.clone(),
        None if run.subtitle.is_empty() => "a run".to_owned(),
        // Without a failure the command says what it is, with files by their names.
        None => run.subtitle.split(' ').map(name_of).collect::<Vec<_>>().join(" "),
    };
    Ok(run)
}

/// Puts the steps of stages among those of a session that began so much earlier, in the order of their beginnings.
fn within(session: Vec<StepView>, stages: &mut Vec<StepView>, earlier: f64) {
    stages.retain(|step| step.stage.as_deref() != Some(Stage::Debug.name()));
    stages.iter_mut().for_each(|step| step.start += earlier);
    stages.extend(session);
    stages.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.depth.cmp(&b.depth)));
}

/// The steps of a debugging session: each lasted from what was found before it. What the search took of the last is told
/// apart.
fn session_steps(told: &[(String, f64)], search: Option<f64>) -> Vec<StepView> {
    let mut steps = Vec::new();
    let mut push = |name: &str, start: f64, seconds: f64| {
        let stage = Some(Stage::Debug.name().to_owned());
        steps.push(StepView { name: name.to_owned(), stage, graph: None, start, seconds, depth: 0, ended: true });
    };
    let mut before = 0.0;
    for (name, at) in told {
        let mut seconds = at - before;
        // Remarks on a step come with it and took no time of their own.
        if seconds < 1e-4 {
            continue;
        }
        if let (Some(search), true) = (search.filter(|search| *search < seconds), name == PROOF) {
            push("minify", before, search);
            before += search;
            seconds -= search;
        }
        push(name, before, seconds);
        before = *at;
    }
    steps
}

/// Gives the search the text it began with, where a debugging session told its program.
fn begin_with_the_program(run: &mut RunView) {
    let program = run.graphs.iter().find(|graph| graph.file == PROGRAM && graph.stage.as_deref() == Some("debug"));
    let text = program.and_then(|graph| run.files.get(graph.text?)).map(|file| file.text.clone());
    if let Some(first) = run.minify.first_mut() {
        first.text = first.text.take().or(text);
    }
}

/// The last part of a path.
fn name_of(word: &str) -> &str {
    word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word)
}

/// The command, the time, the versions.
fn tell_run(run: &mut RunView, begun: &Begun) {
    let words = begun.argv.iter().enumerate();
    // Where the program lies does not matter.
    let words = words.map(|(place, word)| if place == 0 { name_of(word) } else { word });
    run.subtitle = words.collect::<Vec<_>>().join(" ");
    run.facts.push(("command".to_owned(), run.subtitle.clone()));
    run.started = Some(begun.started);
    run.facts.push(("process".to_owned(), begun.pid.to_string()));
    run.facts.extend(begun.versions.iter().map(|(name, version)| (name.clone(), version.clone())));
}

/// Begins and ends of steps, paired.
#[derive(Default)]
struct Steps {
    done: Vec<StepView>,
    open: Vec<(String, StepView)>,
    last: f64,
}

impl Steps {
    fn mark(&mut self, time: f64, stage: Option<Stage>, graph: Option<String>, mark: &StageMark) {
        let key = format!("{stage:?} {graph:?} {} {}", mark.name, mark.depth);
        if mark.mark == Mark::Begin {
            let step = StepView {
                name: mark.name.clone(),
                stage: stage.map(|stage| stage.name().to_owned()),
                graph,
                start: time,
                seconds: 0.0,
                depth: mark.depth,
                ended: false,
            };
            self.open.push((key, step));
            return;
        }
        // An end says how long it took, so a begin that is missing does no harm.
        let begun = self.open.iter().rposition(|(known, _)| *known == key).map(|place| self.open.remove(place).1);
        let start = begun.as_ref().map(|step| step.start);
        let seconds = mark.seconds.or(start.map(|start| time - start)).unwrap_or(0.0);
        self.done.push(StepView {
            name: mark.name.clone(),
            stage: stage.map(|stage| stage.name().to_owned()),
            graph,
            start: start.unwrap_or(time - seconds),
            seconds,
            depth: mark.depth,
            ended: true,
        });
    }

    fn done(mut self) -> Vec<StepView> {
        let last = self.last;
        self.done
            .extend(self.open.into_iter().map(|(_, step)| StepView { seconds: (last - step.start).max(0.0), ..step }));
        self.done.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.depth.cmp(&b.depth)));
        self.done
    }
}

fn path_of(stage: Option<Stage>, graph: Option<&str>, file: &str) -> String {
    [stage.map(Stage::name), graph, Some(file)].into_iter().flatten().collect::<Vec<_>>().join("/")
}

/// Adds a text, in place of the one that had its path before.
fn put_file(run: &mut RunView, path: &str, text: String) -> usize {
    let text = shortened(text);
    if let Some(place) = run.files.iter().position(|file| file.path == path) {
        run.files[place].text = text;
        return place;
    }
    run.files.push(file_at(path, text));
    run.files.len() - 1
}

fn add_kernel(run: &mut RunView, graph: Option<String>, kernel: Kernel) {
    let Kernel { name, loops, disassembly, bytes } = kernel;
    let what = KernelView { name, loops, disassembly, bytes, ..KernelView::default() };
    run.kernels.push(OfGraph { graph, what });
}

/// Gives the kernel of that name its time, the shortest of several; a call of an operator becomes a kernel without loops.
fn add_time(run: &mut RunView, graph: Option<String>, time: KernelTime) {
    let is_it = |known: &&mut OfGraph<KernelView>| known.graph == graph && known.what.name == time.name;
    if let Some(known) = run.kernels.iter_mut().find(is_it) {
        let least = known.what.seconds.map_or(time.seconds, |before| before.min(time.seconds));
        known.what.seconds = Some(least);
        return;
    }
    let what = KernelView { name: time.name, op: time.op, seconds: Some(time.seconds), ..KernelView::default() };
    run.kernels.push(OfGraph { graph, what });
}

fn add_graph(run: &mut RunView, stage: Option<String>, name: Option<String>, dump: GraphDump) {
    let path =
        [stage.as_deref(), name.as_deref(), Some(&dump.file)].into_iter().flatten().collect::<Vec<_>>().join("/");
    let text = put_file(run, &path, dump.text);
    let nodes = nodes_of(dump.nodes, &dump.edges);
    let graph = GraphView { name, stage, file: dump.file, text: Some(text), nodes };
    let same = |known: &GraphView| known.stage == graph.stage && known.name == graph.name && known.file == graph.file;
    match run.graphs.iter().position(same) {
        Some(place) => run.graphs[place] = graph,
        None => run.graphs.push(graph),
    }
}

/// Nodes with their inputs, and with the modules that their neighbours tell.
pub fn nodes_of(rows: Vec<NodeRow>, edges: &[(u32, u32)]) -> Vec<NodeView> {
    let mut nodes: Vec<NodeView> = rows.into_iter().map(node_of).collect();
    for (from, to) in edges {
        // Edges lead forward: a trace that says otherwise is drawn without them.
        if let Some(node) = nodes.get_mut(*to as usize).filter(|_| from < to) {
            node.inputs.push(*from);
        }
    }
    modules::complete(&mut nodes);
    nodes
}

fn node_of(row: NodeRow) -> NodeView {
    let shape = row.shape.map(|sizes| {
        let sizes: Vec<String> = sizes
            .into_iter()
            .map(|size| match size {
                Size::Number(number) => number.to_string(),
                Size::Symbol(text) => text,
            })
            .collect();
        format!("[{}]", sizes.join(", "))
    });
    NodeView {
        name: row.name,
        op: row.op,
        target: row.target,
        module: row.module.filter(|module| !module.is_empty()),
        stack: row.stack,
        shape,
        dtype: row.dtype,
        inputs: Vec::new(),
        divergence: None,
    }
}

/// Gives a node what is known of its value: in the graph that is named, else in every graph with such a node.
fn attach(run: &mut RunView, graph: Option<&str>, parting: Parting) {
    let named = run.graphs.iter().any(|known| graph.is_some() && known.name.as_deref() == graph);
    let divergence = Divergence {
        error: parting.backend_error,
        reference: parting.reference_error,
        class: parting.class,
        value: parting.value,
        spread: parting.spread,
    };
    for known in &mut run.graphs {
        if named && known.name.as_deref() != graph {
            continue;
        }
        if let Some(node) = known.nodes.iter_mut().find(|node| node.name == parting.node) {
            node.divergence = Some(divergence.clone());
        }
    }
}

/// The Python file that a trace names, where it may be quoted. A trace may be a stranger's, and a page is passed on: it quotes
/// nothing but code that lies where the trace was written or where the command runs, and nothing that a link leads to.
fn quotable(file: &str, places: &[PathBuf]) -> Option<String> {
    let path = Path::new(file);
    let real = path.canonicalize().ok()?;
    let is_code = |path: &Path| path.extension().is_some_and(|extension| extension == "py");
    let near = is_code(path) && is_code(&real) && places.iter().any(|place| real.starts_with(place));
    let is_read = fs::metadata(&real).is_ok_and(|found| near && found.is_file() && found.len() <= LARGEST);
    if is_read { fs::read_to_string(real).ok() } else { None }
}

/// Up to how many bytes a file is code that people wrote.
const LARGEST: u64 = 1 << 24;

/// The lines around breaks and recompiles, from files that still say what the trace says.
fn sources(run: &RunView, folder: &Path) -> Vec<SourceView> {
    // A run lies in a folder of runs beside the script.
    let beside = folder.canonicalize().ok().and_then(|run| Some(run.parent()?.parent()?.to_owned()));
    let places: Vec<PathBuf> = beside.into_iter().chain(std::env::current_dir().ok()).collect();
    let mut wanted: BTreeMap<&str, Vec<(u32, Option<&str>)>> = BTreeMap::new();
    for found in &run.breaks {
        wanted.entry(&found.file).or_default().push((found.line, found.source.as_deref()));
    }
    for found in &run.recompiles {
        wanted.entry(&found.file).or_default().push((found.line, None));
    }
    let mut sources = Vec::new();
    for (file, marks) in wanted {
        let Some(text) = quotable(file, &places) else { continue };
        let lines: HashMap<u32, &str> = (1..).zip(text.lines()).collect();
        let still = |line: u32, said: Option<&str>| {
            said.is_none_or(|said| lines.get(&line).is_some_and(|text| text.trim() == said.trim()))
        };
        if !marks.iter().all(|(line, said)| still(*line, *said)) {
            continue;
        }
        let near = |line: u32| marks.iter().any(|(mark, _)| mark.abs_diff(line) <= AROUND);
        let shown = (1..).zip(text.lines()).filter(|(line, _)| near(*line));
        let lines = shown.map(|(line, text)| SourceLine { line, text: text.to_owned() }).collect();
        sources.push(SourceView { file: file.to_owned(), lines });
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_an_end_lasts_until_the_trace_ends_and_says_so() {
        let mut steps = Steps { last: 9.0, ..Steps::default() };
        let mark = |name: &str, mark, depth| StageMark { name: name.to_owned(), mark, depth, seconds: None };
        steps.mark(1.0, Some(Stage::Aot), None, &mark("aot", Mark::Begin, 0));
        steps.mark(2.0, Some(Stage::Aot), None, &mark("joint", Mark::Begin, 1));
        steps.mark(3.0, Some(Stage::Aot), None, &mark("joint", Mark::End, 1));
        let steps = steps.done();
        let told: Vec<_> = steps.iter().map(|step| (step.name.as_str(), step.seconds, step.ended)).collect();
        assert_eq!(told, [("aot", 8.0, false), ("joint", 1.0, true)]);
    }

    #[test]
    fn the_steps_of_a_session_follow_one_another_and_the_search_is_told_apart() {
        let told = [("confirm", 1.0), ("detail", 1.000_01), ("bisect", 3.0), ("prove", 10.0)];
        let told: Vec<(String, f64)> = told.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
        let steps = session_steps(&told, Some(6.0));
        let names: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["confirm", "bisect", "minify", "prove"]);
        let (minify, prove) = (&steps[2], &steps[3]);
        assert_eq!((minify.start, minify.seconds, prove.start, prove.seconds), (3.0, 6.0, 9.0, 1.0));
        // The trace began after the confirmation, and a stage 3.5 seconds later: in the search.
        let mut stages = vec![StepView { stage: None, name: "aot".to_owned(), start: 3.5, depth: 1, ..minify.clone() }];
        within(steps, &mut stages, 1.0);
        let names: Vec<_> = stages.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["confirm", "bisect", "minify", "aot", "prove"]);
    }
}
