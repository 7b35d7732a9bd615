//! Texts for people about an import: the preview by cause, the progress and the end.

use std::fmt::Write as _;

use serde_json::Value;

/// The maximum number of lines of each list that is shown: of causes, of questions, and of warnings about documents.
const LINES_MAX: usize = 20;
/// The width of the progress bar, in characters.
const BAR_LETTERS: u64 = 30;
/// Without a terminal, a line is written each time this many more percent are done.
const PLAIN_STEP_PERCENT: u64 = 10;

/// Returns a count from the service's JSON about an import; 0 if it is missing.
fn import_count(import: &Value, name: &str) -> u64 {
    import[name].as_u64().unwrap_or_default()
}

pub(super) fn is_running(import: &Value) -> bool {
    import["state"] == "running"
}

/// Returns the reason why an import was stopped; `None` if it was not stopped.
pub(super) fn stop_reason(import: &Value) -> Option<&str> {
    (import["state"] == "stopped").then(|| json_text(&import["stopped"]))
}

/// True if the value is the service's JSON about an import or a preview.
pub(super) fn is_import(value: &Value) -> bool {
    let has_counts = ["documents", "documents_done", "created"]
        .iter()
        .all(|name| value[name].is_u64());
    has_counts && value["state"].is_string()
}

/// Returns the number of invoices that were neither created nor already stored.
pub(super) fn refused_count(import: &Value) -> u64 {
    import_count(import, "failed") + import_count(import, "unanswered")
}

/// Returns the number of invoices in the file that are already stored with other contents.
pub(super) fn changed_duplicate_count(import: &Value) -> u64 {
    import_count(import, "duplicates_different")
}

fn duplicates_text(import: &Value) -> String {
    let duplicates = import_count(import, "duplicates");
    match changed_duplicate_count(import) {
        0 => format!("{duplicates} duplicates"),
        different => format!("{duplicates} duplicates ({different} with other contents)"),
    }
}

/// Renders a preview: how many invoices an import would create and refuse, and the causes.
pub(super) fn preview_text(import: &Value) -> String {
    let mut text = format!(
        "{} invoices: {} to create, {}, {} refused, {} need an answer\n",
        import_count(import, "documents"),
        import_count(import, "created"),
        duplicates_text(import),
        import_count(import, "failed"),
        import_count(import, "unanswered"),
    );
    // Writing to a `String` does not fail.
    for warning in json_list(&import["warnings"]) {
        let _ = writeln!(text, "  {}", json_text(warning));
    }
    let causes = json_list(&import["causes"]);
    for cause in causes.iter().take(LINES_MAX) {
        let _ = writeln!(
            text,
            "  {:>7} × {} ({}), {} {}",
            import_count(cause, "count"),
            json_text(&cause["field"]),
            json_text(&cause["rule"]),
            json_text(&cause["currency"]),
            json_amount(&cause["amount"]),
        );
    }
    push_omitted_count(&mut text, causes.len(), "causes");
    let questions = json_list(&import["questions"]);
    for question in questions.iter().take(LINES_MAX) {
        let fields: Vec<_> = json_list(&question["fields"])
            .iter()
            .map(json_text)
            .collect();
        let names = ["name", "customer_no"].map(|name| json_text(&question[name]));
        let customer = names.iter().find(|name| !name.is_empty());
        let customer = customer.copied().unwrap_or("a customer without a name");
        let _ = writeln!(
            text,
            "  {customer}: the import profile lacks {}",
            fields.join(", ")
        );
    }
    push_omitted_count(&mut text, questions.len(), "customers");
    let warnings = json_list(&import["items"]).iter().flat_map(|item| {
        let source = json_text(&item["source"]);
        let warnings = json_list(&item["warnings"]).iter();
        warnings.map(move |warning| format!("{source}: {}", json_text(warning)))
    });
    let warnings: Vec<_> = warnings.collect();
    for warning in warnings.iter().take(LINES_MAX) {
        let _ = writeln!(text, "  {warning}");
    }
    push_omitted_count(&mut text, warnings.len(), "warnings");
    text
}

fn push_omitted_count(text: &mut String, count: usize, name: &str) {
    if count > LINES_MAX {
        let _ = writeln!(text, "  and {} more {name}", count - LINES_MAX);
    }
}

pub(super) fn confirmation_question(import: &Value) -> String {
    let documents = import_count(import, "documents");
    if import_count(import, "documents_done") < documents {
        format!("Import all {documents} invoices?")
    } else {
        format!("Create {} invoices?", import_count(import, "created"))
    }
}

pub(super) fn end_summary(import: &Value) -> String {
    format!(
        "{} of {} invoices created, {}, {} refused (import {}, batch {})",
        import_count(import, "created"),
        import_count(import, "documents"),
        duplicates_text(import),
        refused_count(import),
        json_text(&import["import_no"]),
        json_text(&import["batch_no"]),
    )
}

/// Shows the progress of an import: as a bar on a terminal, else as a line for each step.
pub(super) struct Progress {
    is_terminal: bool,
    shown_percent: Option<u64>,
}

impl Progress {
    pub(super) fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            shown_percent: None,
        }
    }

    /// Returns the text to print; empty if there is nothing new.
    pub(super) fn next_progress_text(&mut self, import: &Value) -> String {
        let done = import_count(import, "documents_done");
        let total = import_count(import, "documents");
        let percent = done.saturating_mul(100) / total.max(1);
        let is_end = !is_running(import);
        if self.is_terminal {
            let filled = percent * BAR_LETTERS / 100;
            let bar: String = (0..BAR_LETTERS)
                .map(|index| if index < filled { '#' } else { '.' })
                .collect();
            let end = if is_end { "\n" } else { "" };
            return format!("\r[{bar}] {percent:>3} %  {done} of {total}{end}");
        }
        let next_percent = self.shown_percent.map(|shown| shown + PLAIN_STEP_PERCENT);
        if !is_end && next_percent.is_some_and(|next| percent < next) {
            return String::new();
        }
        self.shown_percent = Some(percent);
        format!("{percent} %: {done} of {total}\n")
    }
}

fn json_list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn json_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn json_amount(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn import(state: &str, done: u64) -> Value {
        json!({
            "import_no": "I1", "batch_no": "B1", "state": state, "documents": 4_000, "documents_done": done,
            "items": [{ "source": "lines 2 to 3", "warnings": ["email came from the profile."] }],
            "created": done, "duplicates": 0, "failed": 2, "unanswered": 1, "warnings": ["The column x is not read."],
            "causes": [{ "rule": "required", "field": "customer.email", "count": 3, "amount": 12.50, "currency": "NGN" }],
            "questions": [{ "customer_no": "C-1", "name": null, "fields": ["email", "tin"] }],
        })
    }

    #[test]
    fn a_preview_has_causes_with_amounts_and_the_fields_that_the_profile_lacks() {
        insta::assert_snapshot!(preview_text(&import("preview", 4_000)), @r"
        4000 invoices: 4000 to create, 0 duplicates, 2 refused, 1 need an answer
          The column x is not read.
                3 × customer.email (required), NGN 12.5
          C-1: the import profile lacks email, tin
          lines 2 to 3: email came from the profile.
        ");
        assert_eq!(
            confirmation_question(&import("preview", 4_000)),
            "Create 4000 invoices?"
        );
        assert_eq!(
            confirmation_question(&import("preview", 3_000)),
            "Import all 4000 invoices?"
        );
    }

    #[test]
    fn duplicates_with_other_contents_are_counted() {
        let mut import = import("done", 10);
        import["duplicates"] = 7.into();
        let plain = "10 of 4000 invoices created, 7 duplicates, 3 refused (import I1, batch B1)";
        assert_eq!(end_summary(&import), plain);
        import["duplicates_different"] = 2.into();
        let with_changed = plain.replace("7 duplicates", "7 duplicates (2 with other contents)");
        assert_eq!(end_summary(&import), with_changed);
        assert!(preview_text(&import).contains("7 duplicates (2 with other contents)"));
    }

    #[test]
    fn an_import_is_recognised_and_a_stopped_one_has_a_reason() {
        let mut stopped = import("stopped", 500);
        stopped["stopped"] = "It failed.".into();
        assert!(is_import(&stopped) && !is_running(&stopped));
        assert_eq!(stop_reason(&stopped), Some("It failed."));
        assert_eq!(stop_reason(&import("done", 4_000)), None);
        for other in [Value::Null, json!({ "state": "done" }), json!([1])] {
            assert!(!is_import(&other), "{other}");
        }
    }

    #[test]
    fn progress_is_a_bar_on_a_terminal_and_few_lines_elsewhere() {
        let mut bar = Progress::new(true);
        let half = bar.next_progress_text(&import("running", 2_000));
        assert_eq!(
            half,
            format!(
                "\r[{}{}]  50 %  2000 of 4000",
                "#".repeat(15),
                ".".repeat(15)
            )
        );
        assert!(
            bar.next_progress_text(&import("done", 4_000))
                .ends_with("100 %  4000 of 4000\n")
        );
        let mut lines = Progress::new(false);
        let texts = [0, 100, 400, 500, 4_000].map(|done| {
            let state = if done == 4_000 { "done" } else { "running" };
            lines.next_progress_text(&import(state, done))
        });
        assert_eq!(
            texts,
            [
                "0 %: 0 of 4000\n",
                "",
                "10 %: 400 of 4000\n",
                "",
                "100 %: 4000 of 4000\n"
            ]
        );
    }
}
