//! The page: a template, the style, the scripts, and the data.

use serde::Serialize;

use crate::view::RunView;

const TEMPLATE: &str = include_str!("../assets/report.html");
const STYLE: &str = include_str!("../assets/report.css");

/// The scripts, in the order they need one another.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/dom.js"),
    include_str!("../assets/diff.js"),
    include_str!("../assets/heat.js"),
    include_str!("../assets/code.js"),
    include_str!("../assets/blame.js"),
    include_str!("../assets/layout.js"),
    include_str!("../assets/canvas.js"),
    include_str!("../assets/rows.js"),
    include_str!("../assets/overview.js"),
    include_str!("../assets/stages.js"),
    include_str!("../assets/kernels.js"),
    include_str!("../assets/capture.js"),
    include_str!("../assets/minify.js"),
    include_str!("../assets/files.js"),
    include_str!("../assets/compare.js"),
    include_str!("../assets/spread.js"),
    include_str!("../assets/graph.js"),
    include_str!("../assets/main.js"),
];

#[derive(Serialize)]
struct Data<'a> {
    pyrite: &'static str,
    runs: Vec<&'a RunView>,
}

/// A page of a run, and of another that it is compared with.
pub fn html(run: &RunView, other: Option<&RunView>) -> String {
    let data = Data { pyrite: env!("CARGO_PKG_VERSION"), runs: std::iter::once(run).chain(other).collect() };
    let data = match serde_json::to_string(&data) {
        Ok(text) => text,
        // The types have string keys only and cannot fail.
        Err(error) => unreachable!("{error}"),
    };
    let mut script = "'use strict';\n".to_owned();
    SCRIPTS.iter().for_each(|part| script.push_str(part));
    let parts = [
        ("{{title}}", escaped(&format!("{} · Pyrite", run.title))),
        ("{{style}}", STYLE.to_owned()),
        ("{{data}}", in_script(&data)),
        ("{{script}}", script),
    ];
    // Each part is put where its mark stands, in the order of the marks: marks inside of what was put in stay text.
    let mut page = String::with_capacity(TEMPLATE.len() + parts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = TEMPLATE;
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(&text);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// JSON that can stand in a script element: nothing in it begins a tag or a comment.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Text that can stand in an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_of_the_template_is_filled() {
        let page = html(&RunView::default(), None);
        assert!(!page.contains("{{"), "a mark is left");
        assert!(page.contains("function layoutGraph"));
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "</script><script>alert(1)</script><!-- {{script}} &lt;";
        let run = RunView { title: hostile.to_owned(), subtitle: hostile.to_owned(), ..RunView::default() };
        let page = html(&run, Some(&run));
        assert!(!page.contains("alert(1)</script>"));
        assert!(!page.contains("<!--"));
        // One script element for the data, one for the scripts, and no third.
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["runs"][0]["title"], hostile);
    }

    #[test]
    fn the_page_names_nothing_outside_of_it() {
        let page = html(&RunView::default(), None);
        for outside in ["src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
            assert!(!page.contains(outside), "{outside}");
        }
        let elsewhere = page.matches("http").count();
        // The namespace of SVG is a name, not an address that is loaded; the policy is `http-equiv`.
        assert_eq!(elsewhere, 2, "an address is in the page");
    }
}
