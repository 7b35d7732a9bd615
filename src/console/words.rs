//! The sentences of all pages. A template writes `{{ "No run matches."|t }}`; the English sentence is the name of its
//! entry in `words/en.toml`. A translation is a copy of that file with other values.

use std::collections::HashMap;
use std::sync::LazyLock;

static ENGLISH: LazyLock<HashMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("words/en.toml")).unwrap_or_default());

/// Returns the entry of a sentence, or the sentence itself.
pub(super) fn sentence(english: &str) -> String {
    ENGLISH.get(english).cloned().unwrap_or_else(|| english.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    const CATALOGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/console/words/en.toml");

    fn templates(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { templates(&path) } else { vec![path] }).collect()
    }

    /// Returns the sentences that the templates write, `{{ "…"|t }}`.
    fn written() -> BTreeSet<String> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/templates");
        let mut found = BTreeSet::new();
        for path in templates(&directory) {
            let text = fs::read_to_string(path).unwrap();
            let parts: Vec<_> = text.split("\"|t").collect();
            for part in &parts[..parts.len() - 1] {
                found.insert(part.rsplit_once('"').unwrap().1.to_owned());
            }
        }
        found
    }

    /// Only what is sent before there is a session has none, and may be repeated.
    #[test]
    fn each_form_that_writes_carries_its_tokens() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/templates");
        let mut forms = 0;
        for path in templates(&directory) {
            let text = fs::read_to_string(&path).unwrap();
            for form in text.split("<form").skip(1).filter(|form| form.contains(r#"method="post""#)) {
                let form = form.split("</form>").next().unwrap();
                let has_tokens = form.contains(r#"{% include "parts/csrf.html" %}"#);
                let is_public =
                    ["sign_in.html", "choose_password.html"].iter().any(|name| path.ends_with(name));
                assert!(has_tokens || is_public, "{}: {form}", path.display());
                forms += 1;
            }
        }
        assert!(forms > 30, "{forms}");
    }

    /// `EINVOICE_UPDATE_WORDS=1 cargo test --lib console::words` writes the catalogue anew.
    #[test]
    fn the_catalogue_lists_the_sentences_of_all_templates() {
        let written = written();
        assert!(written.contains("Sign in"), "{written:?}");
        if std::env::var_os("EINVOICE_UPDATE_WORDS").is_some() {
            let lines = written.iter().map(|sentence| format!("{sentence:?} = {sentence:?}\n"));
            let header = "# The sentences of all pages: the English one, and what is shown for it.\n\n";
            fs::write(CATALOGUE, header.to_owned() + &lines.collect::<String>()).unwrap();
        }
        let catalogue: HashMap<String, String> =
            toml::from_str(&fs::read_to_string(CATALOGUE).unwrap()).unwrap();
        let listed: BTreeSet<_> = catalogue.into_keys().collect();
        assert_eq!(listed, written);
    }
}
