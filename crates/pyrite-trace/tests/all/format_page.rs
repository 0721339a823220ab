//! `docs/trace-format.md` names every event and every field that there is.

use pyrite_trace::event::{
    Artifact, Break, Divergence, Finding, Frame, GraphDump, Guard, Kernel, KernelTime, LogLine, Mark, MinifyStep,
    NodeRow, Recompile, Repro, Run, Size, Spread, StageMark,
};
use pyrite_trace::{Event, Level, Record, TOPICS};

fn events() -> Vec<Event> {
    let some = || Some(String::new());
    let node = NodeRow {
        target: "t".to_owned(),
        module: some(),
        stack: some(),
        shape: Some(vec![Size::Number(1)]),
        dtype: some(),
        ..NodeRow::default()
    };
    let frame = Frame { file: String::new(), line: 1, function: String::new(), source: None };
    vec![
        Event::Run(Run::default()),
        Event::Stage(StageMark { name: String::new(), mark: Mark::End, depth: 0, seconds: Some(1.0) }),
        Event::Graph(GraphDump { nodes: vec![node], ..GraphDump::default() }),
        Event::Artifact(Artifact { name: String::new(), file: String::new(), text: String::new() }),
        Event::Break(Break { stack: vec![frame], ..Break::default() }),
        Event::Recompile(Recompile::default()),
        Event::Guard(Guard::default()),
        Event::Kernel(Kernel::default()),
        Event::KernelTime(KernelTime::default()),
        Event::Divergence(Divergence { spread: Some(Spread::default()), ..Divergence::default() }),
        Event::Minify(MinifyStep::default()),
        Event::Finding(Finding::default()),
        Event::Repro(Repro::default()),
        Event::Log(LogLine { log: String::new(), level: Level::Info, text: String::new() }),
    ]
}

/// The names of all fields of an object and of the objects in it, except where the keys are data.
fn fields(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (name, inner) in object {
                found.push(name.clone());
                fields(inner, found);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn every_event_is_described_with_all_of_its_fields() {
    let page = include_str!("../../../../docs/trace-format.md");
    let (common, _) = page.split_once("## Events").unwrap();
    for event in events() {
        let record = Record { time: 0.0, stage: None, graph: None, event };
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(serde_json::from_value::<Record>(json.clone()).unwrap(), record);
        let kind = json["event"].as_str().unwrap();
        let (_, rest) = page.split_once(&format!("### `{kind}`")).unwrap_or_else(|| panic!("no section for {kind}"));
        let section = rest.split("\n### ").next().unwrap();
        let mut names = Vec::new();
        fields(&json, &mut names);
        for name in names {
            let told = format!("`{name}`");
            assert!(section.contains(&told) || common.contains(&told), "{kind}: {name} is not described");
        }
    }
    let sections = page.matches("\n### ").count();
    assert_eq!(sections, events().len());
}

#[test]
fn every_file_of_the_table_of_topics_is_in_the_layout() {
    let page = include_str!("../../../../docs/trace-format.md");
    for file in TOPICS.iter().flat_map(|row| row.file.split(", ")).filter(|file| !file.is_empty()) {
        assert!(page.contains(file), "{file} is not in the layout");
    }
}
