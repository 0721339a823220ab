//! Settings in the name of a backend: `torch:inductor?max_fusion_size=1&limit=lowerings:12`.
//!
//! After the question mark come pairs of a name and a value. `limit=SUBSYSTEM:N` lets the first N steps of a part of the
//! compiler be taken, as its own bisector numbers them, `skip=SUBSYSTEM:I,J` leaves single ones out, `steps=FILE` has the
//! steps written there, and `code=FILE` the code that was generated. What is around the program can be set too:
//! `mode=MODE` and `dynamic=true` as torch.compile takes them, `calls=N` calls it N times and looks at what the last call
//! but one returned, `look=N` looks at what the N-th call gives, `tf32=true` lets matrix multiplications and convolutions round their operands to ten bits, which they
//! do not otherwise, `poison=true` fills memory that generated code allocates with NaN, so that elements which are never
//! written show, `ptxas=LEVEL` has Triton's assembler optimise no more than a level from 0 to 3, and `triton=FOLDER` takes
//! Triton from a folder that another version was installed to. Every other name is a setting of
//! Inductor's, or an option of another backend, with its value in JSON or as a plain word.

use serde_json::{Map, Value as Json, json};

/// Settings of what is around a program.
const AROUND: [&str; 8] = ["calls", "dynamic", "look", "mode", "poison", "ptxas", "tf32", "triton"];

/// The value of a setting, if the name of a backend has it.
pub fn setting<'a>(backend: &'a str, wanted: &str) -> Option<&'a str> {
    let (_, pairs) = backend.split_once('?')?;
    pairs.split('&').find_map(|pair| match pair.split_once('=').unwrap_or((pair, "true")) {
        (name, value) if name == wanted => Some(value),
        _ => None,
    })
}

/// The name of a backend without one of its settings.
pub fn without_setting(backend: &str, unwanted: &str) -> String {
    let Some((name, pairs)) = backend.split_once('?') else { return backend.to_owned() };
    let kept: Vec<&str> = pairs.split('&').filter(|pair| pair.split('=').next() != Some(unwanted)).collect();
    if kept.is_empty() { name.to_owned() } else { format!("{name}?{}", kept.join("&")) }
}

/// The name of a backend whose given call is looked at.
pub fn looking_at(backend: &str, call: u32) -> String {
    let separator = if backend.contains('?') { '&' } else { '?' };
    format!("{backend}{separator}look={call}")
}

/// The name without settings.
pub fn base(backend: &str) -> &str {
    backend.split_once('?').map_or(backend, |(name, _)| name)
}

/// The settings, as the Python process takes them.
pub fn settings(backend: &str) -> Json {
    let Some((name, pairs)) = backend.split_once('?') else { return Json::Null };
    let is_inductor = name == "inductor";
    let (mut config, mut all, mut around) = (Map::new(), Map::new(), Map::new());
    for pair in pairs.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
        match name {
            "limit" | "skip" => {
                let (subsystem, numbers) = value.split_once(':').unwrap_or((value, "0"));
                let numbers: Vec<i64> = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
                all.insert("subsystem".to_owned(), json!(subsystem));
                all.insert(name.to_owned(), json!(numbers));
            }
            "steps" | "code" => {
                all.insert(name.to_owned(), json!(value));
            }
            _ => {
                let place = if AROUND.contains(&name) { &mut around } else { &mut config };
                place.insert(name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)));
            }
        }
    }
    all.insert("around".to_owned(), Json::Object(around));
    // What other backends take, torch.compile passes on.
    let (config, options) = if is_inductor { (config, Map::new()) } else { (Map::new(), config) };
    all.insert("config".to_owned(), Json::Object(config));
    all.insert("options".to_owned(), Json::Object(options));
    Json::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_off_the_name() {
        let name = "inductor?max_fusion_size=1&cpp.simdlen=0&mode=max&calls=3&limit=lowerings:12&skip=lowerings:3,7&steps=/a/b";
        assert_eq!(base(name), "inductor");
        let settings = settings(name);
        assert_eq!(settings["config"], json!({"max_fusion_size": 1, "cpp.simdlen": 0}));
        assert_eq!(settings["around"], json!({"mode": "max", "calls": 3}));
        assert_eq!((setting(name, "mode"), setting(name, "tf32")), (Some("max"), None));
        assert_eq!(
            (&settings["subsystem"], &settings["limit"], &settings["skip"], &settings["steps"]),
            (&json!("lowerings"), &json!([12]), &json!([3, 7]), &json!("/a/b"))
        );
        assert!(super::settings("inductor").is_null());
        let own = super::settings("pyrite?strict=true&mode=max");
        assert_eq!((&own["options"], &own["config"]), (&json!({"strict": true}), &json!({})));
        assert_eq!(own["around"], json!({"mode": "max"}));
        assert_eq!(without_setting("inductor?mode=max&calls=3", "calls"), "inductor?mode=max");
        assert_eq!(without_setting("inductor?calls=3", "calls"), "inductor");
    }
}
