//! Incidents as pages show them: all of them on the overview, and one line on every other page.

use jiff::Timestamp;

use crate::console::badges::Badge;
use crate::domain::incident::{Incident, Severity};
use crate::domain::invoice::invoice_view::plain_time;

/// An incident on the overview.
pub(crate) struct IncidentLine {
    pub(crate) badge: Badge,
    pub(crate) title: &'static str,
    pub(crate) summary: String,
    pub(crate) effect: &'static str,
    /// The word before the time: `Since`, or `Seen since` if the incident may be older.
    pub(crate) since_label: &'static str,
    pub(crate) since: String,
    pub(crate) ends: String,
    pub(crate) to_do: &'static str,
    pub(crate) page: &'static str,
}

impl From<Severity> for Badge {
    fn from(severity: Severity) -> Self {
        let (class, text) = match severity {
            Severity::Page => ("bad", "Urgent"),
            Severity::Warning => ("warn", "Warning"),
            Severity::Notice => ("idle", "Notice"),
        };
        Self { class, text }
    }
}

impl IncidentLine {
    pub(crate) fn new(incident: &Incident, now: Timestamp) -> Self {
        let kind = incident.kind;
        let until = incident.finding.until.filter(|until| *until > now);
        Self {
            badge: kind.severity.into(),
            title: kind.title,
            summary: incident.finding.summary.clone(),
            effect: kind.effect,
            since_label: if incident.is_since_first_sight {
                "Seen since"
            } else {
                "Since"
            },
            since: format!(
                "{} UTC, {}",
                plain_time(incident.since),
                age_words(incident.since, now)
            ),
            ends: match until {
                Some(until) => format!(
                    "{} {} {} UTC.",
                    kind.ends,
                    kind.words_before_until(),
                    plain_time(until)
                ),
                None => kind.ends.to_owned(),
            },
            to_do: kind.to_do,
            page: kind.page,
        }
    }
}

/// The gravest incident in one line, for the top of a page.
#[derive(Debug, Clone)]
pub(crate) struct Headline {
    /// The class for the colour of the line.
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

/// Returns one line for the top of a page; `None` if nothing needs an operator.
pub(crate) fn headline(incidents: &[Incident]) -> Option<Headline> {
    let mut urgent = incidents
        .iter()
        .filter(|incident| incident.kind.severity != Severity::Notice);
    let first = urgent.next()?;
    let others = match urgent.count() {
        0 => String::new(),
        1 => " 1 more incident.".to_owned(),
        more => format!(" {more} more incidents."),
    };
    Some(Headline {
        class: Badge::from(first.kind.severity).class,
        text: format!("{}{others}", title_and_summary(first)),
    })
}

/// Returns the title and the summary of an incident, or the summary alone if it repeats the title: if it contains the
/// title, or begins with the same two words.
fn title_and_summary(incident: &Incident) -> String {
    let title = incident.kind.title;
    let summary = &incident.finding.summary;
    let begins_alike = summary.split(' ').take(2).eq(title.split(' ').take(2));
    if begins_alike || summary.to_lowercase().contains(&title.to_lowercase()) {
        summary.clone()
    } else {
        format!("{title}: {summary}")
    }
}

/// Returns how long ago a time was, in the largest fitting unit.
fn age_words(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::domain::incident::{CASES, FoundIncident, INCIDENTS, Situation};

    fn incident(severity: Severity) -> Incident {
        let kind = INCIDENTS.iter().find(|kind| kind.severity == severity);
        Incident {
            kind: kind.unwrap(),
            finding: FoundIncident {
                cause: String::new(),
                summary: "3 wait.".to_owned(),
                count: 3,
                blame: None,
                since: None,
                is_since_first_sight: false,
                until: None,
            },
            since: Timestamp::UNIX_EPOCH,
            is_since_first_sight: false,
        }
    }

    /// Returns an incident for each finding of the cases of all kinds. A finding with an end gets one that is still to
    /// come.
    fn all_incidents() -> Vec<Incident> {
        let mut incidents = Vec::new();
        for (name, change) in CASES {
            let mut situation = Situation::calm();
            change(&mut situation);
            let kind = INCIDENTS.iter().find(|kind| kind.name == *name).unwrap();
            incidents.extend((kind.find)(&situation).into_iter().map(|finding| {
                Incident {
                    kind,
                    since: situation.now,
                    is_since_first_sight: false,
                    finding: FoundIncident {
                        until: finding
                            .until
                            .map(|_| situation.now + SignedDuration::from_secs(9)),
                        ..finding
                    },
                }
            }));
        }
        incidents
    }

    /// True for a word with an underscore, unless it is the name of a setting, which contains a full stop.
    fn is_code(word: &str) -> bool {
        word.contains('_') && !word.contains('.')
    }

    #[test]
    fn the_texts_of_each_incident_are_sentences_that_repeat_nothing_and_contain_no_code() {
        let now = Situation::calm().now;
        for incident in all_incidents() {
            let name = incident.kind.name;
            let line = IncidentLine::new(&incident, now);
            let banner = title_and_summary(&incident);
            for text in [&banner, &line.summary, &line.ends] {
                assert!(text.ends_with('.'), "{name}: {text}");
                assert!(
                    !text.contains("..") && !text.contains("  "),
                    "{name}: {text}"
                );
            }
            for text in [
                &banner[..],
                line.title,
                &line.summary,
                line.effect,
                &line.ends,
            ] {
                let words = text.split(|end: char| end.is_whitespace() || ",;:()".contains(end));
                let code = words
                    .map(|word| word.trim_end_matches('.'))
                    .find(|word| is_code(word));
                assert_eq!(code, None, "{name}: {text}");
            }
            let parts: Vec<_> = banner.split(": ").collect();
            for pair in parts.windows(2) {
                let beginning = |part: &str| part.split(' ').take(2).collect::<Vec<_>>().join(" ");
                assert_ne!(beginning(pair[0]), beginning(pair[1]), "{name}: {banner}");
            }
            let is_timed = line.ends != incident.kind.ends;
            assert_eq!(
                is_timed,
                incident.finding.until.is_some(),
                "{name}: {}",
                line.ends
            );
        }
    }

    #[test]
    fn a_headline_says_the_title_only_if_the_summary_does_not() {
        let line_text = |summary: &str| {
            let actors = INCIDENTS.iter().find(|kind| kind.name == "actors-failed");
            let mut incident = incident(Severity::Page);
            incident.kind = actors.unwrap();
            incident.finding.summary = summary.to_owned();
            title_and_summary(&incident)
        };
        for (summary, is_alone) in [
            ("An actor has given up: it panicked.", true),
            ("On replica b: An actor has given up: it panicked.", true),
            ("An actor gave up.", true),
            ("It panicked.", false),
        ] {
            assert_eq!(line_text(summary) == summary, is_alone, "{summary}");
            assert!(line_text(summary).ends_with(summary), "{summary}");
        }
    }

    #[test]
    fn an_incident_that_may_be_older_says_seen_since() {
        for (is_since_first_sight, label) in [(true, "Seen since"), (false, "Since")] {
            let incident = Incident {
                is_since_first_sight,
                ..incident(Severity::Warning)
            };
            let line = IncidentLine::new(&incident, Timestamp::UNIX_EPOCH);
            assert_eq!(line.since_label, label);
        }
    }

    #[test]
    fn the_line_of_the_gravest_incident_has_its_colour() {
        for (severities, class, rest) in [
            (&[Severity::Page][..], "bad", "3 wait."),
            (
                &[Severity::Page, Severity::Warning, Severity::Warning],
                "bad",
                "3 wait. 2 more incidents.",
            ),
            (
                &[Severity::Warning, Severity::Warning],
                "warn",
                "3 wait. 1 more incident.",
            ),
            (&[Severity::Warning, Severity::Notice], "warn", "3 wait."),
        ] {
            let incidents: Vec<_> = severities.iter().copied().map(incident).collect();
            let line = headline(&incidents).unwrap();
            assert_eq!(line.class, class);
            assert!(line.text.ends_with(rest), "{}", line.text);
        }
        assert!(headline(&[incident(Severity::Notice)]).is_none());
    }

    #[test]
    fn an_age_is_written_in_one_unit() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let ago =
            |seconds: i64| age_words(Timestamp::from_second(1_000_000 - seconds).unwrap(), now);
        assert_eq!(
            [-5, 0, 59, 60, 3_600, 90_000, 172_800].map(ago),
            [
                "0 s ago",
                "0 s ago",
                "59 s ago",
                "1 min ago",
                "1 h ago",
                "25 h ago",
                "2 days ago"
            ]
        );
    }
}
