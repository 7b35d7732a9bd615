//! Incidents of the replicas: one gives no sign, or they are out of step with each other.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::domain::incident::Finding;
use crate::domain::incident::situation::Situation;
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::replica::Replica;

/// A clock that is ahead or behind by more than this makes due times and timestamps wrong.
const CLOCK_TOLERANCE_MS: u64 = 2_000;
/// An upgrade replaces the replicas one by one. It is not done after this time.
const UPGRADE_TAKES: SignedDuration = SignedDuration::from_mins(15);

pub(super) fn replica_missing(situation: &Situation) -> Vec<Finding> {
    let missing: Vec<_> = situation.replicas.missing_replicas().collect();
    let last_sign = missing.iter().map(|replica| replica.seen_at).min();
    let Some(last_sign) = last_sign else {
        return Vec::new();
    };
    let count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
    let summary = format!("{}.", sentence_list(&missing, last_sign_words));
    vec![Finding::new(count, summary).since(Some(last_sign))]
}

pub(super) fn diverging_replicas(situation: &Situation) -> Vec<Finding> {
    clocks_differ(situation)
        .into_iter()
        .chain(versions_differ(situation))
        .collect()
}

fn clocks_differ(situation: &Situation) -> Option<Finding> {
    let present = situation.replicas.present();
    let wrong: Vec<_> = present
        .filter(|replica| replica.figures.clock_ahead_ms.unsigned_abs() > CLOCK_TOLERANCE_MS)
        .collect();
    let count = u64::try_from(wrong.len()).unwrap_or(u64::MAX);
    let summary = format!(
        "A clock differs from that of the database: {}.",
        sentence_list(&wrong, clock_words)
    );
    (count > 0).then(|| Finding::new(count, summary).caused_by("clock"))
}

/// Finds replicas of several versions, once the youngest of them has run for longer than an upgrade takes.
fn versions_differ(situation: &Situation) -> Option<Finding> {
    let present: Vec<_> = situation.replicas.present().collect();
    let versions: BTreeSet<_> = present
        .iter()
        .map(|replica| replica.figures.version.as_str())
        .collect();
    let youngest = present
        .iter()
        .map(|replica| replica.figures.started_at)
        .max()?;
    if versions.len() < 2 || situation.now.duration_since(youngest) < UPGRADE_TAKES {
        return None;
    }
    let summary = format!(
        "The replicas run several versions: {}.",
        sentence_list(&present, version_words)
    );
    let count = u64::try_from(versions.len()).unwrap_or(u64::MAX);
    Some(
        Finding::new(count, summary)
            .caused_by("version")
            .since(Some(youngest)),
    )
}

fn sentence_list(replicas: &[&Replica], words: fn(&Replica) -> String) -> String {
    let parts: Vec<_> = replicas.iter().map(|replica| words(replica)).collect();
    parts.join(", ")
}

fn last_sign_words(replica: &Replica) -> String {
    let name = &replica.identity.name;
    format!(
        "{name} has given no sign since {} UTC",
        plain_time(replica.seen_at)
    )
}

fn clock_words(replica: &Replica) -> String {
    let name = &replica.identity.name;
    let millis = replica.figures.clock_ahead_ms;
    let seconds = millis.unsigned_abs() / 1_000;
    let direction = if millis > 0 { "ahead" } else { "behind" };
    format!("{name} is {seconds} s {direction}")
}

fn version_words(replica: &Replica) -> String {
    format!("{} runs {}", replica.identity.name, replica.figures.version)
}
