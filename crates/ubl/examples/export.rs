//! Writes the test set and documents by chance as UBL into a folder, and the public examples, read
//! and written again, into one beside it: `cargo run -p ubl --example export -- DIR` makes
//! `DIR/written` and `DIR/again` for `judges/judge.py`.

#[path = "../tests/ubl/random.rs"]
mod random;
#[path = "../tests/ubl/test_set.rs"]
mod test_set;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// The number of documents by chance; the same ones at each run.
const RANDOM_DOCUMENTS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).map(PathBuf::from).collect();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let (folder, sources) = match &*arguments {
        [folder] => (folder, &sources),
        [folder, sources] => (folder, sources),
        _ => return Err("usage: export FOLDER [FOLDER OF UBL FILES]".into()),
    };
    let (written, again) = (folder.join("written"), folder.join("again"));
    fs::create_dir_all(&written)?;
    fs::create_dir_all(&again)?;
    for (name, document) in test_set::documents() {
        fs::write(written.join(format!("{name}.xml")), ubl::write(&document)?)?;
    }
    let mut runner = TestRunner::deterministic();
    for number in 0..RANDOM_DOCUMENTS {
        let mut document = random::any_document()
            .new_tree(&mut runner)
            .map_err(|reason| reason.to_string())?
            .current();
        // EN 16931 demands terms or a due date where something is to be paid (BR-CO-25).
        document
            .payment_terms
            .get_or_insert_with(|| "At once".to_owned());
        fs::write(
            written.join(format!("random_{number:03}.xml")),
            ubl::write(&document)?,
        )?;
    }
    for entry in fs::read_dir(sources)? {
        let path = entry?.path();
        let Some(name) = path
            .file_name()
            .filter(|_| path.extension().is_some_and(|ext| ext == "xml"))
        else {
            continue;
        };
        match ubl::read(&fs::read(&path)?, &ubl::Limits::default()) {
            Ok(read) => {
                fs::write(
                    again.join(name),
                    ubl::write_with(&read.document, &read.beside)?,
                )?;
            }
            Err(faults) => {
                for fault in faults {
                    println!("{}: {fault}", name.display());
                }
            }
        }
    }
    Ok(())
}
