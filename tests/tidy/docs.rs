//! Every file says at its top what it is for; a `mod.rs` says it briefly, beside its table.

use crate::rules::MOD_DOC_LINES_MAX;
use crate::source::{Fault, Parsed};

pub(crate) fn faults(file: &Parsed<'_>) -> Vec<Fault> {
    let doc: Vec<&str> =
        file.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    if doc.iter().all(|line| line.is_empty()) {
        return vec![file.fault(1, "the file does not begin with a module doc (`//!`)".to_owned())];
    }
    let lines = prose_lines(&doc);
    if file.is_mod_rs() && lines > MOD_DOC_LINES_MAX {
        let what =
            format!("the doc of a mod.rs has {lines} lines beside its table, {MOD_DOC_LINES_MAX} at most");
        return vec![file.fault(1, what)];
    }
    Vec::new()
}

/// Lines of a doc that are not blank and belong to no table and no fenced text.
fn prose_lines(doc: &[&str]) -> usize {
    let mut is_fenced = false;
    let is_prose = |line: &&&str| {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        !is_fence && !is_fenced && !line.is_empty() && !line.starts_with('|')
    };
    doc.iter().filter(is_prose).count()
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        crate::faults(&[Source::new(path, text)]).into_iter().map(|fault| fault.what).collect()
    }

    #[test]
    fn a_file_begins_with_a_module_doc() {
        let fault = "the file does not begin with a module doc (`//!`)";
        assert_eq!(complaints("src/store/lanes.rs", "// Lanes.\n"), [fault]);
        assert_eq!(complaints("src/store/lanes.rs", "//!\n"), [fault]);
        assert_eq!(complaints("src/store/lanes.rs", "//! Lanes.\n"), [""; 0]);
    }

    #[test]
    fn the_doc_of_a_mod_rs_is_short_beside_its_table() {
        let table = "//!\n//! | a | b |\n//! ```text\n//! GET /\n//! ```\n".repeat(9);
        let text = |lines: usize| "//! Prose.\n".repeat(lines) + &table;
        assert_eq!(complaints("src/store/mod.rs", &text(8)), [""; 0]);
        let fault = "the doc of a mod.rs has 9 lines beside its table, 8 at most";
        assert_eq!(complaints("src/store/mod.rs", &text(9)), [fault]);
        assert_eq!(complaints("src/store/lanes.rs", &text(9)), [""; 0]);
    }
}
