//! The sentence at the top of an account's overview during an outage, in plain words.

use jiff::Timestamp;

use crate::domain::incident::Incident;

/// The sentences about incidents that delay invoices to the authority, gravest first. `{since}` stands for the time.
const SENTENCES: [(&str, &str); 5] = [
    (
        "authority-out",
        "The tax authority has not answered since {since}.",
    ),
    (
        "authority-refuses-key",
        "This service cannot use the tax authority since {since}. Its operator has been told.",
    ),
    (
        "authority-tls",
        "This service cannot use the tax authority since {since}. Its operator has been told.",
    ),
    (
        "authority-slow",
        "The tax authority answers slowly since {since}.",
    ),
    (
        "service-paused",
        "This service sends nothing to the tax authority since {since}. Its operator has paused it.",
    ),
];

/// Returns the sentences about the gravest of these incidents; `None` if none of them concerns the authority. An
/// incident of only some replicas or of some calls is left out, because invoices are still sent. `waiting_count` is the
/// number of the account's waiting invoices, as text.
pub(super) fn banner(incidents: &[Incident], waiting_count: &str) -> Option<String> {
    let known_incident = SENTENCES.iter().find_map(|(name, sentence)| {
        let incident = incidents
            .iter()
            .find(|one| one.kind.name == *name && one.concerns_all_invoices())?;
        Some((sentence, incident.since))
    });
    let (sentence, since) = known_incident?;
    let sentence = sentence.replace("{since}", &time_text(since));
    let wait = match waiting_count {
        "0" => "Nothing of yours waits.".to_owned(),
        "1" => "1 invoice waits and goes on by itself; there is nothing to do.".to_owned(),
        many => format!("{many} invoices wait and go on by themselves; there is nothing to do."),
    };
    Some(format!("{sentence} {wait}"))
}

fn time_text(at: Timestamp) -> String {
    at.strftime("%d %b %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::incident::{FoundIncident, INCIDENTS, SOME_CALLS, SOME_REPLICAS};

    #[test]
    fn each_sentence_is_about_an_incident_of_the_table() {
        for (name, _) in SENTENCES {
            assert!(INCIDENTS.iter().any(|kind| kind.name == name), "{name}");
        }
    }

    #[test]
    fn a_fault_of_some_replicas_has_no_banner() {
        for (name, cause, has_banner) in [
            ("authority-out", "connect", true),
            ("authority-refuses-key", "", true),
            ("authority-refuses-key", SOME_REPLICAS, false),
            ("authority-refuses-key", SOME_CALLS, false),
            ("runs-paused", "", false),
        ] {
            let kind = INCIDENTS.iter().find(|kind| kind.name == name);
            let incident = Incident {
                kind: kind.unwrap(),
                finding: FoundIncident {
                    cause: cause.to_owned(),
                    summary: String::new(),
                    count: 1,
                    blame: None,
                    since: None,
                    is_since_first_sight: false,
                    until: None,
                },
                since: Timestamp::UNIX_EPOCH,
                is_since_first_sight: false,
            };
            let is_ours = name == "authority-refuses-key" && has_banner;
            assert_eq!(incident.is_fault_of_ours(), is_ours, "{name} {cause}");
            let sentence = banner(&[incident], "0");
            assert_eq!(
                sentence.is_some(),
                has_banner,
                "{name} {cause}: {sentence:?}"
            );
        }
    }
}
