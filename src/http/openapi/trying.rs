//! The section of the API document about the magic words: words in an invoice number that make the simulator of the
//! authority fail. The section is built from the simulator's own table.

use sandbox::{MAGIC_WORDS, MagicWord};

const SIMULATOR_INTRODUCTION: &str = "In mode `sandbox`, the default in development, the tax authority is a simulator within the \
    service. Put one of these words into an invoice number, anywhere and in any case, as in `INV7SBXDROP`, then \
    create, submit and transmit that invoice:";

const SIMULATOR_NOTES: &str = "What passes is waited for and tried again: the invoice is signed once, whatever happens. The \
    simulator also takes orders under `/sandbox` at its own address, which is printed at the start: faults of every \
    kind (the next call, an operation, a probability with a seed, for some seconds), latencies, how many calls are \
    served at once. `crates/sandbox/README.md` lists them.";

/// Returns the section about the magic words, in Markdown: each word that makes the simulator fail if an invoice number
/// contains it, and the failure.
pub(super) fn magic_words_section() -> String {
    let rows: String = MAGIC_WORDS.iter().map(magic_word_row).collect();
    format!(
        "## Trying it against the simulator\n\n{SIMULATOR_INTRODUCTION}\n\n| Word | What happens |\n|---|---|\n{rows}\n{SIMULATOR_NOTES}"
    )
}

fn magic_word_row(magic_word: &MagicWord) -> String {
    format!("| `{}` | {} |\n", magic_word.word, magic_word.happens)
}
