//! The table of everything that can be logged and left in the debug directory.
//!
//! A [`Topic`] is one row: the name that `PYRITE_LOGS` and `PYRITE_COMPILE_DEBUG` know, the file it fills, and a line of
//! help. The command `pyrite logs`, the Python package and the reference pages read this table; there is no other.

/// Something that can be logged or left as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// What capture does.
    Capture,
    /// What ahead-of-time autograd does.
    Aot,
    /// What the native compiler does.
    Native,
    /// Calls of backends.
    Backend,
    /// What the debugger does.
    Debug,
    /// Graphs as tables.
    Graph,
    /// Graphs as Python.
    GraphCode,
    /// Graphs as files that run.
    GraphRunnable,
    /// Graphs after decomposition and clean-up.
    GraphTransformed,
    /// Joint, forward and backward graphs.
    AotGraphs,
    /// Why graphs ended.
    GraphBreaks,
    /// Why frames were captured again.
    Recompiles,
    /// What captured frames assume.
    Guards,
    /// Bytecode before and after.
    Bytecode,
    /// Loops before fusion.
    IrPreFusion,
    /// Loops after fusion, in the order they run.
    Schedule,
    /// Loops beside machine code.
    OutputCode,
    /// What makes a program slow.
    PerfHints,
    /// How long every step took.
    Timings,
}

/// What a row of the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicKind {
    /// A part of Pyrite with lines of several levels.
    Component,
    /// Something that is shown whole or not at all.
    Artifact,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct TopicRow {
    /// The topic.
    pub topic: Topic,
    /// Its name.
    pub name: &'static str,
    /// What kind it is.
    pub kind: TopicKind,
    /// The file it fills in the debug directory; empty where it has none of its own.
    pub file: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
}

const fn component(topic: Topic, name: &'static str, help: &'static str) -> TopicRow {
    TopicRow { topic, name, kind: TopicKind::Component, file: "debug.log", help }
}

const fn artifact(topic: Topic, name: &'static str, file: &'static str, help: &'static str) -> TopicRow {
    TopicRow { topic, name, kind: TopicKind::Artifact, file, help }
}

/// All topics, in the order they are listed.
pub const TOPICS: &[TopicRow] = &[
    component(Topic::Capture, "capture", "what capture does: frames, breaks, graphs"),
    component(Topic::Aot, "aot", "what ahead-of-time autograd does"),
    component(Topic::Native, "native", "what the native compiler does: lowering, fusion, machine code"),
    component(Topic::Backend, "backend", "calls of backends, with times"),
    component(Topic::Debug, "debug", "what the debugger does and writes"),
    artifact(Topic::Graph, "graph", "", "captured graphs as tables of nodes"),
    artifact(Topic::GraphCode, "graph_code", "graph_readable.py", "graphs as Python, with shapes and the user's lines"),
    artifact(
        Topic::GraphRunnable,
        "graph_runnable",
        "graph_runnable.py",
        "graphs as files that PyTorch and Pyrite run",
    ),
    artifact(
        Topic::GraphTransformed,
        "graph_transformed",
        "graph_transformed.py",
        "functionalized programs, before differentiation",
    ),
    artifact(
        Topic::AotGraphs,
        "aot_graphs",
        "joint.py, forward.py, backward.py",
        "the graphs of ahead-of-time autograd",
    ),
    artifact(Topic::GraphBreaks, "graph_breaks", "graph_breaks.txt", "reasons of graph breaks, with the user's lines"),
    artifact(Topic::Recompiles, "recompiles", "recompiles.txt", "why frames were captured again"),
    artifact(Topic::Guards, "guards", "guards.txt", "the assumptions of captured frames"),
    artifact(Topic::Bytecode, "bytecode", "bytecode.txt", "bytecode of frames, before and after"),
    artifact(Topic::IrPreFusion, "ir_pre_fusion", "ir_pre_fusion.txt", "loops and calls before fusion"),
    artifact(Topic::Schedule, "schedule", "ir_post_fusion.txt", "loops and calls after fusion, in the order they run"),
    artifact(Topic::OutputCode, "output_code", "output_code.txt", "loops next to the machine code generated from them"),
    artifact(Topic::PerfHints, "perf_hints", "perf_hints.txt", "hints on what slows a program down"),
    artifact(Topic::Timings, "timings", "timings.txt, compile_profile.json", "the time of every compilation step"),
];

impl Topic {
    /// Its row.
    pub fn row(self) -> &'static TopicRow {
        &TOPICS[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The topic of a name.
    pub fn named(name: &str) -> Option<Self> {
        TOPICS.iter().find(|row| row.name == name).map(|row| row.topic)
    }

    /// Its bit in a set of topics.
    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A name that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no log `{name}`; {}", self.known())]
pub struct UnknownTopic {
    /// The name.
    pub name: String,
    /// Names that are near it.
    pub near: Vec<&'static str>,
}

impl UnknownTopic {
    /// The problem with a name.
    pub fn new(name: &str) -> Self {
        let mut near: Vec<(usize, &'static str)> = TOPICS
            .iter()
            .map(|row| (distance(name, row.name), row.name))
            .filter(|(distance, known)| *distance <= 2.max(known.len() / 3))
            .collect();
        near.sort_unstable();
        Self { name: name.to_owned(), near: near.into_iter().take(3).map(|(_, known)| known).collect() }
    }

    fn known(&self) -> String {
        match self.near.as_slice() {
            [] => format!("there are all, {}", TOPICS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")),
            near => format!("did you mean {}? `pyrite logs` lists all", near.join(", ")),
        }
    }
}

/// How many letters have to be changed, added or left out to get from one name to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_topics() {
        for (place, row) in TOPICS.iter().enumerate() {
            assert_eq!(row.topic as usize, place, "{}", row.name);
            assert_eq!(Topic::named(row.name), Some(row.topic));
        }
        assert!(TOPICS.len() <= 32, "a set of topics has 32 bits");
    }

    #[test]
    fn a_wrong_name_is_told_with_near_ones() {
        let problem = UnknownTopic::new("graph_break");
        assert_eq!(problem.near.first(), Some(&"graph_breaks"));
        assert!(problem.to_string().contains("did you mean graph_breaks"), "{problem}");
        assert!(UnknownTopic::new("xyzzyxyzzyxyzzy").to_string().contains("output_code"));
    }

    #[test]
    fn the_distance_of_names_counts_changes() {
        assert_eq!(distance("guards", "guards"), 0);
        assert_eq!(distance("gurds", "guards"), 1);
        assert_eq!(distance("", "aot"), 3);
        assert_eq!(distance("capture", "caputre"), 2);
    }
}
