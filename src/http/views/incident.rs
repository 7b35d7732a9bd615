//! Incidents, as operators see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::incident::{Incident, Severity};
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::upstream::Blame;

/// The incidents that the answering process sees now, and the incidents that other replicas report about themselves.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IncidentList)]
pub(crate) struct Incidents<'a> {
    pub(crate) incidents: Vec<IncidentView<'a>>,
    /// Time at which the database was last asked; null if it never answered this process. The facts that the process
    /// knows by itself are of this moment.
    pub(crate) counted_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Incident)]
pub(crate) struct IncidentView<'a> {
    /// Name of the incident: a label of the gauge `einvoice_incident`, and a heading of the runbook.
    incident: &'static str,
    #[schema(value_type = String)]
    severity: Severity,
    title: &'static str,
    /// The cause that distinguishes incidents of the same name; empty if the incident has only one cause.
    cause: &'a str,
    /// The party at fault; null if the facts do not show it.
    #[schema(value_type = Option<String>)]
    blame: Option<Blame>,
    /// A description of the incident, with numbers. It names the replica if the incident is one of another replica.
    summary: &'a str,
    count: u64,
    /// The work that waits, or is at risk.
    effect: &'static str,
    /// Time at which the incident began, or was first seen.
    since: String,
    /// True if the real beginning is unknown, and `since` is the time at which the answering process or a comparison
    /// with the ledger first saw the incident.
    is_since_first_sight: bool,
    /// Time of the next attempt or of the end of the incident, if one of them is known.
    until: Option<String>,
    ends: &'static str,
    to_do: &'static str,
    /// The places to look at, in Markdown; the runbook says the same.
    look_at: &'static str,
    /// Page of the console that shows more.
    page: &'static str,
}

impl<'a> From<&'a Incident> for IncidentView<'a> {
    fn from(incident: &'a Incident) -> Self {
        let Incident {
            kind,
            finding,
            since,
            is_since_first_sight,
        } = incident;
        Self {
            incident: kind.name,
            severity: kind.severity,
            title: kind.title,
            cause: &finding.cause,
            blame: finding.blame,
            summary: &finding.summary,
            count: finding.count,
            effect: kind.effect,
            since: precise_time(*since),
            is_since_first_sight: *is_since_first_sight,
            until: finding.until.map(precise_time),
            ends: kind.ends,
            to_do: kind.to_do,
            look_at: kind.look_at,
            page: kind.page,
        }
    }
}
