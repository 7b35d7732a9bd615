//! The rows of the tables of an import's page, in the words that people know from the forms.

use crate::console::accounts::invoice_fields::request_field_label;
use crate::console::badges::{Badge, badge, outcome_badge};
use crate::domain::import::record::{
    ImportFault, ImportItem, ImportOutcome, ImportState, RefusalCause,
};
use crate::domain::import::source::mask_indexes;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// The words for the rules that documents of files break. A rule that is not here is named by its own word.
const RULES: [(&str, &str); 31] = [
    ("after_or_equal", "Too early"),
    ("before_or_equal", "Too late"),
    (
        "category_conflict",
        "Another category than the customer has",
    ),
    ("columns", "Cell under no name"),
    ("control_characters", "Characters that do not show"),
    ("currency", "No currency of the list"),
    ("date", "No date"),
    ("digits", "Too many decimals"),
    ("duplicate", "Twice"),
    ("email", "No email address"),
    ("exists", "Not on the list"),
    ("format", "Written in another form"),
    ("formula", "Formula without a value"),
    ("greater_than", "Too small"),
    ("invisible_characters", "Characters that do not show"),
    ("irn_malformed", "No IRN"),
    ("irn_taken", "The number belongs to another invoice"),
    ("json", "Cannot be read"),
    ("look_alike", "Letters that look like others"),
    ("max", "Too large or too long"),
    ("min", "Too small or too short"),
    ("one_of", "None of the allowed words"),
    ("order", "Rows of an invoice stand apart"),
    ("prohibited", "Not allowed here"),
    ("purchase", "A purchase of this account"),
    ("required", "Missing"),
    ("same", "Rows of an invoice differ"),
    ("submittable", "A number that the authority does not take"),
    ("sum", "The sum is another one"),
    ("tin", "No tax number"),
    ("type", "No number, or of another kind"),
];
/// The end of the label of a field of any line. The place of an error names the line already.
const LINE_SUFFIX: &str = " of a line";

pub(super) struct ImportItemLine {
    pub(super) item: ImportItem,
    pub(super) badge: Badge,
    /// A sentence about each error, with its place in the file.
    pub(super) errors: Vec<String>,
}

pub(super) struct RefusalCauseLine {
    pub(super) cause: RefusalCause,
    /// The label of the field; its path if it has none.
    pub(super) label: String,
    /// The words for the rule.
    pub(super) problem: String,
}

impl ImportItemLine {
    pub(super) fn new(state: ImportState, mut item: ImportItem, catalog: &Catalog) -> Self {
        if let Some(contents) = &mut item.contents {
            contents.payable = in_currency_digits(contents.payable, &contents.currency, catalog);
        }
        Self {
            badge: outcome_badge(
                item_badge(state, item.outcome),
                item.duplicate,
                item.existing_cancelled,
            ),
            errors: item.errors.iter().map(error_sentence).collect(),
            item,
        }
    }
}

impl RefusalCauseLine {
    pub(super) fn new(cause: RefusalCause, catalog: &Catalog) -> Self {
        let currency = cause.currency.as_deref();
        let digits = currency.map_or(0, |currency| catalog.currency_digits(currency));
        Self {
            label: request_field_label(&cause.field),
            problem: rule_words(&cause.rule),
            cause: RefusalCause {
                amount: cause.amount.with_digits(digits),
                ..cause
            },
        }
    }
}

pub(super) fn in_currency_digits(amount: Amount, currency: &str, catalog: &Catalog) -> Amount {
    amount.with_digits(catalog.currency_digits(currency))
}

fn rule_words(rule: &str) -> String {
    let known = RULES.iter().find(|(id, _)| *id == rule);
    known.map_or_else(|| rule.replace('_', " "), |(_, words)| (*words).to_owned())
}

/// Returns the message of an error after its place, with the label of the field instead of its path.
fn error_sentence(error: &ImportFault) -> String {
    let path = error.field.as_str();
    let masked = mask_indexes(path);
    let label = request_field_label(&masked);
    let named = format!("The {path} field ");
    let rest = error.message.strip_prefix(&named);
    match rest.filter(|_| label != masked) {
        Some(rest) => {
            let label = label.strip_suffix(LINE_SUFFIX).unwrap_or(&label);
            format!("{}: {label} {rest}", error.place)
        }
        None => format!("{}: {}", error.place, error.message),
    }
}

/// Returns the badge of an invoice. In a preview the words say what would happen, because nothing was created.
fn item_badge(state: ImportState, outcome: ImportOutcome) -> Badge {
    match (state, outcome) {
        (ImportState::Preview, ImportOutcome::Created) => badge("info", "To create"),
        (_, outcome) => outcome.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::reference::catalog::ReferenceList;

    #[test]
    fn a_page_names_fields_and_rules_as_its_forms_do() {
        for (field, message, expected) in [
            (
                "invoice_lines.0.quantity",
                "The invoice_lines.0.quantity field must be greater than 0.",
                "line 4: Quantity must be greater than 0.",
            ),
            (
                "due_date",
                "The due_date field is required.",
                "line 4: Due date is required.",
            ),
            (
                "invoice_lines.0.odd",
                "The invoice_lines.0.odd field is odd.",
                "line 4: The invoice_lines.0.odd field is odd.",
            ),
            ("file", "It is empty.", "line 4: It is empty."),
        ] {
            let error = ImportFault {
                field: field.to_owned(),
                rule: "x".to_owned(),
                place: "line 4".to_owned(),
                message: message.to_owned(),
            };
            assert_eq!(error_sentence(&error), expected);
        }
        for (rule, words) in [
            ("greater_than", "Too small"),
            ("required", "Missing"),
            ("never_heard", "never heard"),
        ] {
            assert_eq!(rule_words(rule), words);
        }
    }

    #[test]
    fn the_money_of_a_cause_has_the_digits_of_its_currency() {
        let mut catalog = Catalog::default();
        let currencies = json!([
            { "code": "NGN", "decimal_digits": 2 }, { "code": "JPY", "decimal_digits": 0 },
            { "code": "KWD", "decimal_digits": 3 },
        ]);
        catalog.load(ReferenceList::Currencies, &currencies);
        for (currency, amount, shown) in [
            (Some("NGN"), "25.0", "25.00"),
            (Some("JPY"), "25", "25"),
            (Some("KWD"), "25.5", "25.500"),
            (None, "25", "25"),
        ] {
            let cause = RefusalCause {
                rule: "required".to_owned(),
                field: "due_date".to_owned(),
                count: 1,
                amount: Amount::parse(amount).unwrap(),
                currency: currency.map(str::to_owned),
                unread: 0,
            };
            let line = RefusalCauseLine::new(cause, &catalog);
            assert_eq!(line.cause.amount.to_string(), shown, "{currency:?}");
        }
    }

    #[test]
    fn only_an_import_says_that_an_invoice_was_created() {
        for (state, outcome, words) in [
            (ImportState::Preview, ImportOutcome::Created, "To create"),
            (ImportState::Preview, ImportOutcome::Duplicate, "Duplicate"),
            (ImportState::Preview, ImportOutcome::Failed, "Rejected"),
            (ImportState::Running, ImportOutcome::Created, "Created"),
            (ImportState::Stopped, ImportOutcome::Created, "Created"),
            (ImportState::Done, ImportOutcome::Created, "Created"),
        ] {
            assert_eq!(item_badge(state, outcome).text, words, "{state} {outcome}");
        }
    }
}
