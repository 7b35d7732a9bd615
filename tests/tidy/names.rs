//! No type, module or file is named after a drawer: `InvoiceManager` and `utils` do not say what is inside.

use syn::visit::{self, Visit};

use crate::rules::DRAWER_WORDS;
use crate::source::{Fault, Parsed};

pub(crate) fn faults(file: &Parsed<'_>) -> Vec<Fault> {
    let mut declared = Declared::default();
    declared.visit_file(&file.tree);
    let places = file.steps().into_iter().map(|step| (1, step.to_owned()));
    let names = places.chain(declared.found).filter(|(_, name)| is_drawer(name));
    names.map(|(line, name)| file.fault(line, format!("`{name}` is named after a drawer"))).collect()
}

fn is_drawer(name: &str) -> bool {
    let word = last_word(name).to_lowercase();
    DRAWER_WORDS.iter().any(|drawer| word == *drawer || word.strip_suffix('s') == Some(drawer))
}

/// `Data` of `InvoiceData`, `utils` of `http_utils`, all of `Metadata`.
fn last_word(name: &str) -> &str {
    let last = name.rsplit('_').next().unwrap_or(name);
    last.rfind(char::is_uppercase).map_or(last, |start| &last[start..])
}

/// The names of modules and types, with their lines.
#[derive(Default)]
struct Declared {
    found: Vec<(usize, String)>,
}

impl Declared {
    fn record(&mut self, name: &syn::Ident) {
        self.found.push((name.span().start().line, name.to_string()));
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(item) => self.record(&item.ident),
            syn::Item::Struct(item) => self.record(&item.ident),
            syn::Item::Enum(item) => self.record(&item.ident),
            syn::Item::Union(item) => self.record(&item.ident),
            syn::Item::Trait(item) => self.record(&item.ident),
            syn::Item::Type(item) => self.record(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complaints;

    #[test]
    fn a_type_is_not_named_after_a_drawer() {
        for item in ["struct LaneManager;", "enum Data {}", "trait TaxService {}", "type PartyInfo = u8;"] {
            assert_eq!(complaints("src/store/lanes.rs", item).len(), 1, "{item}");
        }
    }

    #[test]
    fn a_module_is_not_named_after_a_drawer() {
        assert_eq!(
            complaints("src/store/mod.rs", "mod lane_utils;"),
            ["`lane_utils` is named after a drawer"]
        );
    }

    #[test]
    fn a_file_is_not_named_after_a_drawer() {
        assert_eq!(complaints("src/store/helpers.rs", ""), ["`helpers` is named after a drawer"]);
        assert_eq!(complaints("src/store/util/dates.rs", ""), ["`util` is named after a drawer"]);
    }

    #[test]
    fn only_the_last_whole_word_of_a_name_counts() {
        for name in ["Metadata", "DataRow", "service_id", "ManagerRole", "informed"] {
            assert!(!is_drawer(name), "{name}");
        }
    }
}
