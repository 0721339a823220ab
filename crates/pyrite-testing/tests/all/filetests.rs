//! Every file under `filetests/`, doing what it asks for.

use std::path::{Path, PathBuf};

use pyrite_testing::filetest::{Bless, check};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of file tests").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "py") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_gives_what_it_says() {
    let bless = if std::env::var_os("BLESS").is_some_and(|v| v == "1") { Bless::Yes } else { Bless::No };
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests"), &mut found);
    found.sort();
    assert!(found.len() >= 10, "only {} file tests were found", found.len());
    let problems: Vec<String> = found.iter().filter_map(|path| check(path, bless).err()).collect();
    assert!(problems.is_empty(), "{} of {} files:\n{}", problems.len(), found.len(), problems.join("\n"));
}

#[test]
fn a_difference_is_reported_and_blessing_mends_it() {
    let folder = std::env::temp_dir().join(format!("pyrite-filetest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("case.py");
    let text = "# test: infer\ndef forward(self, x : \"f32[2, 3]\"):\n    gelu = torch.ops.aten.gelu.default(x)\n    return (gelu,)\n";
    std::fs::write(&path, text).unwrap();
    let error = check(&path, Bless::No).unwrap_err();
    assert!(error.contains("gelu: f32[2, 3]"), "{error}");
    check(&path, Bless::Yes).unwrap();
    check(&path, Bless::No).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}
