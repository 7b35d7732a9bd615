//! The house rules as tests: floors, sizes, names and docs, read from the sources with `syn`.
//!
//! A rule is changed in `tidy/rules.rs`, where all of them stand as tables; the modules beside it only
//! look for what the tables say. Each module ends with planted faults, one a rule, that prove it looks.
//! `cargo test --test tidy -- --nocapture` prints the medians as well.

#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/docs.rs"]
mod docs;
#[path = "tidy/features.rs"]
mod features;
#[path = "tidy/floors.rs"]
mod floors;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/uses.rs"]
mod uses;
#[path = "tidy/words.rs"]
mod words;

use std::path::Path;

use source::{Fault, Parsed, Source};

/// Everything that is wrong with these files, in the order of paths and lines.
fn faults(files: &[Source]) -> Vec<Fault> {
    let (files, mut faults) = source::parse_all(files);
    faults.extend(files.iter().flat_map(faults_of));
    faults.sort();
    faults
}

fn faults_of(file: &Parsed<'_>) -> Vec<Fault> {
    let uses = uses::paths_used(file);
    let checks = [
        floors::faults(file, &uses),
        crates::faults(file, &uses),
        sizes::faults(file),
        names::faults(file),
        words::faults(file),
        docs::faults(file),
    ];
    checks.into_iter().flatten().collect()
}

/// What is said about one small file that begins with a module doc, without its path and line.
#[cfg(test)]
fn complaints(path: &str, text: &str) -> Vec<String> {
    let source = Source::new(path, &format!("//! A planted file.\n\n{text}"));
    faults(&[source]).into_iter().map(|fault| fault.what).collect()
}

#[test]
fn the_source_tree_is_tidy() -> std::io::Result<()> {
    let files = source::read_tree(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    println!("{}", sizes::Medians::of(&files));
    let faults = faults(&files);
    let listing: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), listing.join("\n"));
    Ok(())
}

#[test]
fn a_clean_source_has_no_faults() {
    let text = "use crate::domain::money::Amount;\n\npub struct Invoice {\n    pub total: Amount,\n}\n";
    assert_eq!(complaints("src/store/invoice.rs", text), [""; 0]);
}

#[test]
fn a_source_that_does_not_parse_is_a_fault() {
    let said = complaints("src/store/invoice.rs", "fn broken( {");
    assert!(said[0].starts_with("does not parse"), "{said:?}");
}

#[test]
fn a_fault_names_its_file_and_line() {
    let source = Source::new("src/domain/invoice.rs", "//! Doc.\n\nuse tokio::spawn;\n");
    assert_eq!(
        faults(&[source])[0].to_string(),
        "src/domain/invoice.rs:3: `src/domain` must not see `tokio`"
    );
}
