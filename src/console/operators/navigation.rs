//! The navigation of the pages under `/console`.

use crate::console::frame::NavigationEntry;

/// The pages of the navigation, in its order.
const PAGES: &[(&str, &str)] = &[
    ("Overview", "/console"),
    ("Runs", "/console/runs"),
    ("Replicas", "/console/replicas"),
    ("Supervision", "/console/supervision"),
    ("Quarantine", "/console/quarantine"),
    ("Lanes", "/console/lanes"),
    ("Breakers", "/console/breakers"),
    ("Deliveries", "/console/deliveries"),
    ("Mails", "/console/mails"),
    ("Taxpayers", "/console/taxpayers"),
    ("Reconciliations", "/console/reconciliations"),
    ("Audit", "/console/audit"),
    ("Integrators", "/console/integrators"),
    ("Keys", "/console/keys"),
    ("Operators", "/console/operators"),
];

pub(crate) fn navigation() -> Vec<NavigationEntry> {
    PAGES
        .iter()
        .map(|(label, path)| NavigationEntry {
            label,
            path: (*path).to_owned(),
        })
        .collect()
}
