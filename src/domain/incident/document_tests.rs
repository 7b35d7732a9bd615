//! The alert rules and the runbook, written from the table. `EINVOICE_WRITE_DOCS=1 cargo test --lib
//! incident::document_tests` updates the files.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;

use crate::domain::incident::{CHANGING_CAUSES, INCIDENTS, IncidentKind, Severity};

const RULES_HEAD: &str = "\
# Alerts for einvoice, written from the table of incidents (src/domain/incident); change them there. Each names
# its section of docs/operations.md, which says what to do. The service decides if there is an incident: its gauge
# stays above 0 for as long as the thing stays, on each replica that sees it.
groups:
  - name: einvoice
    rules:
";
/// The template of the cause, if there is one.
const LABELLED_CAUSE: &str = "{{ with $labels.cause }} ({{ . }}){{ end }}";
/// The incidents that may come and go within seconds, and how long each must last before somebody is alerted.
const MOMENTARY: [(&str, &str); 2] = [("replica-missing", "5s"), ("authority-limit-low", "10s")];

/// An incident that the service cannot see itself, with the expression of Prometheus that shows it, and how long this
/// must hold.
struct OutsideAlert {
    kind: IncidentKind,
    expression: &'static str,
    holds_for: &'static str,
}

const OUTSIDE_ALERTS: &[OutsideAlert] = &[
    OutsideAlert {
        kind: IncidentKind {
            name: "process-down",
            severity: Severity::Page,
            title: "A process does not answer",
            effect: "The other replicas take over its work within the time of a lease; with one replica, everything waits.",
            ends: "When it answers again.",
            to_do: "Look at the last lines of its log, and start it again.",
            look_at: "The last lines of its log; a message on standard error says what a process that does not start lacks. \
                      If it crashes again and again, the work that crashes it is quarantined at the third crash: see \
                      `/ops/quarantine`, and report it.",
            page: "/console/supervision",
            find: |_| Vec::new(),
        },
        expression: "up{job=\"einvoice\"} == 0",
        holds_for: "1m",
    },
    OutsideAlert {
        kind: IncidentKind {
            name: "writes-slow",
            severity: Severity::Warning,
            title: "Writes wait for the database",
            effect: "All writes take longer.",
            ends: "By itself, when the database is faster.",
            to_do: "Look at the disk of the database, and at what else uses it.",
            look_at: "`database_write_wait_seconds` and `database_read_wait_seconds`; the load of the database's machine.",
            page: "/console/supervision",
            find: |_| Vec::new(),
        },
        expression: "histogram_quantile(0.99, sum by (le) (rate(einvoice_database_write_wait_seconds_bucket[5m]))) > 1",
        holds_for: "10m",
    },
];

fn all_kinds() -> impl Iterator<Item = &'static IncidentKind> {
    let outside = OUTSIDE_ALERTS.iter().map(|alert| &alert.kind);
    outside.chain(INCIDENTS)
}

/// Returns the file of alert rules for Prometheus.
fn alert_rules() -> String {
    let mut rules = String::from(RULES_HEAD);
    for alert in OUTSIDE_ALERTS {
        let condition = AlertCondition {
            expression: alert.expression.to_owned(),
            holds_for: alert.holds_for,
            cause: LABELLED_CAUSE.to_owned(),
        };
        write_rule(&mut rules, &alert.kind, &condition);
    }
    for kind in INCIDENTS {
        write_rule(&mut rules, kind, &incident_condition(kind));
    }
    rules
}

/// The condition of an alert, and the template of its cause.
struct AlertCondition {
    expression: String,
    holds_for: &'static str,
    cause: String,
}

/// Returns the condition of an alert about an incident. If the cause may change while the incident lasts, it is no
/// label: one incident would become several alerts. The text then names the causes that are told at the moment.
fn incident_condition(kind: &IncidentKind) -> AlertCondition {
    let gauge = format!("einvoice_incident{{incident=\"{}\"}}", kind.name);
    let mut momentary = MOMENTARY.iter();
    let momentary = momentary.find(|(name, _)| *name == kind.name);
    let holds_for = momentary.map_or("0s", |(_, holds_for)| *holds_for);
    if kind.may_change_cause() {
        let causes = format!("query `max by (cause) ({gauge}) > 0` | sortByLabel \"cause\"");
        AlertCondition {
            expression: format!("max({gauge}) > 0"),
            holds_for,
            cause: format!(
                "{{{{ range {causes} }}}}{{{{ with .Labels.cause }}}} ({{{{ . }}}}){{{{ end }}}}{{{{ end }}}}"
            ),
        }
    } else {
        AlertCondition {
            expression: format!("max by (cause) ({gauge}) > 0"),
            holds_for,
            cause: LABELLED_CAUSE.to_owned(),
        }
    }
}

fn write_rule(rules: &mut String, kind: &IncidentKind, condition: &AlertCondition) {
    let title_cause_and_count = format!("{}{}: {{{{ $value }}}}", kind.title, condition.cause);
    let lines = [
        format!("      - alert: {}", alert_name(kind.name)),
        format!("        expr: {}", quoted(&condition.expression)),
        format!("        for: {}", condition.holds_for),
        format!("        labels: {{ severity: {} }}", kind.severity),
        "        annotations:".to_owned(),
        format!("          summary: {}", quoted(&title_cause_and_count)),
        format!(
            "          description: {}",
            quoted(&format!("{} {}", kind.effect, kind.to_do))
        ),
        format!("          runbook: docs/operations.md#{}", kind.name),
    ];
    for line in lines {
        rules.push_str(&line);
        rules.push('\n');
    }
}

/// Returns the section of each incident, for docs/operations.md.
fn runbook() -> String {
    let mut sections = String::new();
    for kind in all_kinds() {
        let _ = write!(
            sections,
            "\n### {}\n\n**{}** ({}). {}\n\n- *Ends:* {}\n- *Do:* {}\n- *Look at:* {}\n",
            kind.name, kind.title, kind.severity, kind.effect, kind.ends, kind.to_do, kind.look_at
        );
    }
    sections
}

/// Returns the name of the alert, such as `EinvoiceRunsPaused`.
fn alert_name(incident: &str) -> String {
    let words = incident.split('-').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    std::iter::once("Einvoice".to_owned())
        .chain(words)
        .collect()
}

/// Quotes a text for YAML.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

const RULES_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus/rules.yaml");
const RUNBOOK_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md");
const RUNBOOK_BEGIN: &str = "<!-- The incidents, written from their table. -->\n";
const RUNBOOK_END: &str = "\n<!-- End of the incidents. -->";

/// Compares a file with what the table says, or writes it if `EINVOICE_WRITE_DOCS` is set.
fn check_file(file: &str, expected: &str) {
    if std::env::var_os("EINVOICE_WRITE_DOCS").is_some() {
        fs::write(file, expected).unwrap();
    }
    let written = fs::read_to_string(file).unwrap_or_default();
    assert!(
        written == expected,
        "{file} is old: EINVOICE_WRITE_DOCS=1 cargo test --lib incident::document_tests"
    );
}

#[test]
fn the_alert_rules_are_those_of_the_table() {
    check_file(RULES_FILE, &alert_rules());
}

#[test]
fn the_runbook_is_that_of_the_table() {
    let page = fs::read_to_string(RUNBOOK_FILE).unwrap();
    let (before, rest) = page.split_once(RUNBOOK_BEGIN).unwrap();
    let (_, after) = rest.split_once(RUNBOOK_END).unwrap();
    let expected = format!("{before}{RUNBOOK_BEGIN}{}{RUNBOOK_END}{after}", runbook());
    check_file(RUNBOOK_FILE, &expected);
}

#[test]
fn each_kind_has_a_name_and_an_alert_of_its_own() {
    let names: HashSet<_> = all_kinds().map(|kind| kind.name).collect();
    assert_eq!(names.len(), all_kinds().count());
    let alerts: HashSet<_> = all_kinds().map(|kind| alert_name(kind.name)).collect();
    assert_eq!(alerts.len(), all_kinds().count());
    assert!(alerts.contains("EinvoiceRunsPaused"), "{alerts:?}");
}

#[test]
fn an_incident_whose_cause_may_change_is_one_alert() {
    let kinds = INCIDENTS.iter().filter(|kind| kind.may_change_cause());
    assert_eq!(kinds.count(), CHANGING_CAUSES.len(), "each is in the table");
    for kind in INCIDENTS {
        let expression = incident_condition(kind).expression;
        let has_label = expression.starts_with("max by (cause)");
        assert_eq!(has_label, !kind.may_change_cause(), "{expression}");
    }
    for (name, _) in MOMENTARY {
        assert!(INCIDENTS.iter().any(|kind| kind.name == name), "{name}");
    }
}

#[test]
fn each_text_is_a_sentence() {
    for kind in all_kinds() {
        for text in [kind.effect, kind.ends, kind.to_do, kind.look_at] {
            assert!(text.ends_with('.'), "{}: {text}", kind.name);
            assert!(!text.contains("  "), "{}: {text}", kind.name);
        }
        assert!(!kind.title.ends_with('.'), "{}", kind.title);
    }
}
