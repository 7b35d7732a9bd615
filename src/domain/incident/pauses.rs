//! The incident of taxpayers that operators have paused.

use crate::domain::incident::situation::{CountAndOldest, Situation};
use crate::domain::incident::work::group_finding;
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, count_phrase};
use crate::domain::kernel::ids::TaxpayerId;

/// The maximum number of paused taxpayers that are named.
pub const PAUSED_NAMED_MAX: usize = 5;

pub(super) const TAXPAYERS_PAUSED: IncidentKind = IncidentKind {
    name: "taxpayers-paused",
    severity: Severity::Warning,
    title: "Operators have paused taxpayers",
    effect: "What these taxpayers write is answered 503, and their runs wait, also those with a deadline.",
    ends: "When an operator resumes the taxpayers.",
    to_do: "Resume each taxpayer when the reason for its pause is gone.",
    look_at: "`paused_taxpayers` of `/ops/supervision`, with the reasons; `/ops/audit?action=taxpayer.pause` says who \
              paused them.",
    page: "/console/supervision",
    find: find_taxpayers_paused,
};

fn find_taxpayers_paused(situation: &Situation) -> Vec<FoundIncident> {
    let paused = &situation.paused_taxpayers;
    let group = CountAndOldest {
        count: u64::try_from(paused.len()).unwrap_or(u64::MAX),
        since: paused.first().map(|pause| pause.since),
    };
    group_finding(group, |count| {
        let named = paused.iter().take(PAUSED_NAMED_MAX);
        let named: Vec<_> = named
            .map(|pause| name_and_number(situation, pause.taxpayer_id))
            .collect();
        let others = match paused.len().saturating_sub(PAUSED_NAMED_MAX) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let are_paused = count_phrase(count, "taxpayer is", "taxpayers are");
        format!(
            "{are_paused} paused by operators: {}{others}.",
            named.join(", ")
        )
    })
}

/// Returns the name of a taxpayer with its number; only the number if the name has not been read yet.
fn name_and_number(situation: &Situation, taxpayer: TaxpayerId) -> String {
    let work = situation.work.as_ref();
    let mut names = work.into_iter().flat_map(|work| &work.paused_names);
    match names.find(|(id, _)| *id == taxpayer) {
        Some((_, name)) => format!("{name} ({taxpayer})"),
        None => format!("number {taxpayer}"),
    }
}
