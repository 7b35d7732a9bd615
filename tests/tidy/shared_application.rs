//! Most tests of the API share one application, and with it the simulator. A test that clears all faults of the simulator would
//! also end those on which others wait, so it needs an application of its own.

use std::path::Path;
use std::{fs, io};

use crate::paths::sources;

/// Returns the tests on the shared application that clear faults.
fn clearing_tests(text: &str) -> Vec<&str> {
    let mut clearing = Vec::new();
    for attribute in ["#[each_database]\n", "#[on_sqlite]\n"] {
        let tests = text.split(attribute).skip(1);
        let bodies = tests.filter_map(|test| test.split("\n}\n").next());
        let found = bodies.filter(|body| body.contains("clear_faults()"));
        clearing.extend(found.filter_map(|body| body.lines().next()));
    }
    clearing
}

#[test]
fn a_test_that_clears_faults_has_an_application_of_its_own() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources(root, "tests/api")?;
    assert!(files.len() > 50);
    for file in files {
        let text = fs::read_to_string(root.join(&file))?;
        assert_eq!(
            clearing_tests(&text),
            [""; 0],
            "{file}: write (ALONE) behind the attribute"
        );
    }
    Ok(())
}

#[test]
fn only_the_shared_application_counts() {
    let text = "#[each_database]\nfn a() {\n    clear_faults();\n}\n\n#[each_database(ALONE)]\nfn b() {\n    clear_faults();\n}\n\n\
                #[each_database]\nfn c() {\n}\n\nfn helper() {\n    clear_faults();\n}\n\n#[on_sqlite]\nfn d() {\n    clear_faults();\n}\n";
    assert_eq!(clearing_tests(text), ["fn a() {", "fn d() {"]);
}
