//! Writes the test set and documents by chance as UBL into `target/tmp/ubl/written`, and the public examples, read and
//! written again, into `target/tmp/ubl/again`. `scripts/test` has `judges/judge.py` judge them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use ubl::{Limits, read, write, write_with_parts};

use crate::random::any_document;
use crate::test_set;

/// The number of documents by chance; the same ones at each run.
const RANDOM_DOCUMENTS: usize = 200;

/// Returns an empty folder.
fn empty_folder(name: &str) -> io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("ubl")
        .join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes a document that must be one that can be read.
fn export(folder: &Path, name: &str, xml: &str) -> io::Result<()> {
    assert!(read(xml.as_bytes(), &Limits::default()).is_ok(), "{name}");
    fs::write(folder.join(name), xml)
}

#[test]
fn documents_of_our_own_are_exported_for_the_judges() {
    let folder = empty_folder("written").unwrap();
    let rounded = ("rounded_together", test_set::rounded_together());
    for (name, document) in test_set::documents().into_iter().chain([rounded]) {
        export(&folder, &format!("{name}.xml"), &write(&document).unwrap()).unwrap();
    }
    let mut runner = TestRunner::deterministic();
    for number in 0..RANDOM_DOCUMENTS {
        let mut document = any_document().new_tree(&mut runner).unwrap().current();
        // EN 16931 demands terms or a due date where something is to be paid (BR-CO-25).
        document
            .payment_terms
            .get_or_insert_with(|| "At once".to_owned());
        let xml = write(&document).unwrap();
        export(&folder, &format!("random_{number:03}.xml"), &xml).unwrap();
    }
}

#[test]
fn public_examples_are_exported_for_the_judges() {
    let folder = empty_folder("again").unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "xml") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Ok(source) = read(&fs::read(&path).unwrap(), &Limits::default()) {
            let xml = write_with_parts(&source.document, &source.beside).unwrap();
            export(&folder, &name, &xml).unwrap();
        }
    }
}
