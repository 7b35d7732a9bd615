//! Reconciliations: comparisons of one day of a taxpayer with the authority's ledger. The pages show the differences
//! with a form to decide them, and a form to start a comparison.

use actix_web::web;
use askama::Template;

use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list_with_status};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::{ReasonForm, form_page_status};
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::operators::{Operator, OperatorSession, Viewer};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::fault::Fault;
use crate::domain::reconciliation::day::{
    Finding, FindingAction, OperatorDecision, Reconciliation, ReconciliationState, RecordedFinding,
};
use crate::http::api::ops::reconciliations::{self as api, FindingAct};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::reconciliation::FindingDecision;
use crate::http::forms::text_checks;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::search::irn_page_path;
use crate::http::state::ApiState;
use crate::store::operations::reconciliations;
use crate::store::operations::reconciliations::ReconciliationFilter;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/reconciliations")
            .page(list_reconciliations)
            .form(handle_reconciliation_form),
        path("/console/reconciliations/{id}").page(show_reconciliation),
        path("/console/reconciliations/{id}/decide").form(decide_findings),
        path("/console/reconciliations/{id}/reopen").form(reopen_findings),
    ]
}

#[derive(Template)]
#[template(path = "operators/reconciliations.html")]
struct ReconciliationsPage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<ReconciliationLine>,
    pages: PagePosition,
    /// The form that starts a comparison.
    start_form: FormState,
}

struct ReconciliationLine {
    reconciliation: Reconciliation,
    badge: Badge,
    /// The number of differences that an operator has to decide; 0 if the day was compared again since.
    undecided_count: u32,
}

#[derive(Template)]
#[template(path = "operators/reconciliation.html")]
struct ReconciliationPage {
    frame: Frame,
    reconciliation: Reconciliation,
    badge: Badge,
    /// True if the day was compared again since, so that nothing here is to be decided.
    is_superseded: bool,
    findings: Vec<FindingLine>,
    pages: PagePosition,
    /// The form that decides findings.
    form: FormState,
}

struct FindingLine {
    number: u32,
    may_be_ticked: bool,
    is_ticked: bool,
    /// The address of the page of the IRN; `None` if the IRN in the authority's list is malformed.
    irn_page: Option<String>,
    badge: Badge,
    advice: &'static str,
    finding: Finding,
    decision: Option<OperatorDecision>,
}

/// GET /console/reconciliations: lists the reconciliations that match, newest first.
async fn list_reconciliations(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let today = state.today().to_string();
    let prefilled_fields = [
        ("taxpayer_id", list.value("taxpayer_id")),
        ("day", today.as_str()),
    ];
    let start_form = FormState::new(FormValues::from(prefilled_fields));
    render_list(&state, &session, list, start_form).await
}

async fn render_list(
    state: &ApiState,
    session: &OperatorSession,
    list: ListQuery,
    start_form: FormState,
) -> Answer {
    let taxpayer_id = list.0.taxpayer_id("taxpayer_id");
    let day = list.0.date("day")?;
    let filter = ReconciliationFilter {
        taxpayer_id,
        day,
        needs_operator: list.0.flag("for_you")?,
    };
    let (found, total) = reconciliations::page(&state.store, filter, list.page()).await?;
    let superseded = reconciliations::find_superseded(&state.store, &found).await?;
    let page = ReconciliationsPage {
        frame: Frame::for_operator(session, "Reconciliations"),
        pages: list.pages("/console/reconciliations", total),
        rows: found
            .into_iter()
            .map(|reconciliation| ReconciliationLine {
                badge: reconciliation.state.into(),
                undecided_count: if superseded.contains(&reconciliation.id) {
                    0
                } else {
                    reconciliation.counts.listed
                },
                reconciliation,
            })
            .collect(),
        list,
        start_form,
    };
    show_list_with_status(form_page_status(&page.start_form), &page.pages, &page)
}

/// POST /console/reconciliations: queues a comparison of one day of a taxpayer.
async fn handle_reconciliation_form(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    form: Form<FormValues>,
) -> Answer {
    match start_reconciliation(&state, &session, &form.0).await {
        Ok(reconciliation) => Ok(go_to(
            &format!("/console/reconciliations/{}", reconciliation.id),
            "The comparison is queued.",
        )),
        Err(error) if error.faults.is_empty() => Err(error),
        Err(error) => {
            let unfiltered_list = ListQuery::new(&Query::from_text(""));
            let form = FormState::with_faults(form.0, error.faults);
            render_list(&state, &session, unfiltered_list, form).await
        }
    }
}

async fn start_reconciliation(
    state: &ApiState,
    session: &OperatorSession,
    form: &FormValues,
) -> Result<Reconciliation, ApiError> {
    let by = ReasonForm::from(form).to_operator_request(state, session)?;
    let taxpayer = path_ids::existing_taxpayer_id(state, form.text("taxpayer_id")).await;
    let taxpayer = taxpayer.map_err(|error| {
        if error.code == ErrorCode::TaxpayerNotFound {
            let message = "There is no taxpayer with this number.";
            ApiError::from(Fault::new("taxpayer_id", "exists", message))
        } else {
            error
        }
    })?;
    let day = text_checks::parse_date(form.text("day"));
    let day = day.map_err(|rule| Fault::field("day", rule))?;
    let requested = state
        .reconciliations
        .queue_comparison(taxpayer, day, Some(by))
        .await?;
    Ok(requested)
}

/// GET /console/reconciliations/{id}: shows a reconciliation with its findings.
async fn show_reconciliation(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    id: web::Path<String>,
    query: Query,
) -> Answer {
    let reconciliation = api::find_reconciliation(&state, &id).await?;
    let list = ListQuery::new(&query);
    render_reconciliation(
        &state,
        &session,
        reconciliation,
        &list,
        FormState::default(),
    )
    .await
}

async fn render_reconciliation(
    state: &ApiState,
    session: &OperatorSession,
    reconciliation: Reconciliation,
    list: &ListQuery,
    form: FormState,
) -> Answer {
    let findings = reconciliations::findings(&state.store, &reconciliation, list.page()).await?;
    let this_reconciliation = std::slice::from_ref(&reconciliation);
    let superseded = reconciliations::find_superseded(&state.store, this_reconciliation).await?;
    let is_superseded = !superseded.is_empty();
    let counts = reconciliation.counts;
    let total = [counts.repaired, counts.listed, counts.decided];
    let total = total.into_iter().map(u64::from).sum();
    let page = ReconciliationPage {
        frame: Frame::for_operator(session, "Reconciliation"),
        badge: reconciliation.state.into(),
        findings: findings
            .into_iter()
            .map(|finding| FindingLine::new(&reconciliation, finding, &form, is_superseded))
            .collect(),
        is_superseded,
        pages: list.pages(
            &format!("/console/reconciliations/{}", reconciliation.id),
            total,
        ),
        reconciliation,
        form,
    };
    show_list_with_status(form_page_status(&page.form), &page.pages, &page)
}

/// POST /console/reconciliations/{id}/decide: stores a decision about the ticked findings.
async fn decide_findings(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<FormValues>,
) -> Answer {
    change_decisions(&state, &session, &id, form.0, FindingAct::Decide).await
}

/// POST /console/reconciliations/{id}/reopen: withdraws the decision about the ticked findings.
async fn reopen_findings(
    state: web::Data<ApiState>,
    Operator(session): Operator,
    id: web::Path<String>,
    form: Form<FormValues>,
) -> Answer {
    change_decisions(&state, &session, &id, form.0, FindingAct::Reopen).await
}

async fn change_decisions(
    state: &ApiState,
    session: &OperatorSession,
    id: &str,
    form: FormValues,
    act: FindingAct,
) -> Answer {
    let reconciliation = api::find_reconciliation(state, id).await?;
    let decision = match read_decision(state, &form) {
        Ok(decision) => decision,
        Err(error) => {
            let number: u64 = form.text("page").parse().unwrap_or(1);
            let list = ListQuery::new(&Query::from_text(&format!("page={number}")));
            let form = FormState::with_faults(form, error.faults);
            return render_reconciliation(state, session, reconciliation, &list, form).await;
        }
    };
    let changed = act
        .apply_to_findings(state, &reconciliation, session.id, decision)
        .await?;
    let notice = match (act, changed) {
        (_, 0) => "Nothing was changed.".to_owned(),
        (FindingAct::Decide, 1) => "1 difference is decided.".to_owned(),
        (FindingAct::Decide, changed) => format!("{changed} differences are decided."),
        (FindingAct::Reopen, 1) => "1 difference is listed again.".to_owned(),
        (FindingAct::Reopen, changed) => format!("{changed} differences are listed again."),
    };
    let page = format!("/console/reconciliations/{}", reconciliation.id);
    Ok(go_to(&page, &notice))
}

/// Reads the ticked findings and the reason. Fails if either is missing.
fn read_decision(state: &ApiState, form: &FormValues) -> Result<FindingDecision, ApiError> {
    let ticked = form.checked_values("finding");
    let findings: Vec<u32> = ticked.filter_map(|text| text.parse().ok()).collect();
    if findings.is_empty() {
        let message = "Nothing is chosen: tick what you mean.";
        return Err(Fault::new("finding", "required", message).into());
    }
    let reason = ReasonForm::from(form).read_required(state)?;
    Ok(FindingDecision { findings, reason })
}

impl FindingLine {
    fn new(
        reconciliation: &Reconciliation,
        recorded: RecordedFinding,
        form: &FormState,
        is_superseded: bool,
    ) -> Self {
        let RecordedFinding {
            number,
            finding,
            decision,
        } = recorded;
        let (class, text) = match (finding.action, &decision) {
            (FindingAction::Repaired, _) => ("ok", "Repaired"),
            (FindingAction::Listed, Some(_)) => ("idle", "Decided"),
            (FindingAction::Listed, None) if is_superseded => ("idle", "Compared again since"),
            (FindingAction::Listed, None) => ("warn", "For you to decide"),
        };
        Self {
            number,
            may_be_ticked: finding.action == FindingAction::Listed && !is_superseded,
            is_ticked: form.has_choice("finding", &number.to_string()),
            irn_page: Irn::parse(&finding.irn)
                .ok()
                .map(|irn| irn_page_path(reconciliation.taxpayer_id, &irn)),
            badge: Badge { class, text },
            advice: match finding.action {
                FindingAction::Repaired => "Nothing: it was repaired.",
                FindingAction::Listed if is_superseded => {
                    "Nothing here: only the latest comparison of the day counts."
                }
                FindingAction::Listed => finding.kind.advice(),
            },
            finding,
            decision,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::reconciliation::day::AskedBy;
    use crate::domain::reconciliation::finding_kind::FindingKind;

    #[test]
    fn only_the_latest_comparison_of_a_day_has_differences_to_decide() {
        let at = Timestamp::UNIX_EPOCH;
        let day = "2026-01-15".parse().unwrap();
        let id = uuid::Uuid::nil();
        let one = Reconciliation::new(id, TaxpayerId(7), day, AskedBy::Operator, at);
        let line = |action, is_decided: bool, is_superseded| {
            let recorded = RecordedFinding {
                number: 1,
                finding: Finding {
                    kind: FindingKind::MissingRemotely,
                    irn: "INV001-94AD90FB-20261121".to_owned(),
                    local: None,
                    remote: None,
                    action,
                    detail: String::new(),
                },
                decision: is_decided.then(|| OperatorDecision {
                    operator_id: 5,
                    reason: "a letter".to_owned(),
                    decided_at: at,
                }),
            };
            let line = FindingLine::new(&one, recorded, &FormState::default(), is_superseded);
            (line.badge.text, line.may_be_ticked)
        };
        for (action, is_decided, is_superseded, shown) in [
            (
                FindingAction::Listed,
                false,
                false,
                ("For you to decide", true),
            ),
            (
                FindingAction::Listed,
                false,
                true,
                ("Compared again since", false),
            ),
            (FindingAction::Listed, true, false, ("Decided", true)),
            (FindingAction::Listed, true, true, ("Decided", false)),
            (FindingAction::Repaired, false, true, ("Repaired", false)),
        ] {
            assert_eq!(line(action, is_decided, is_superseded), shown);
        }
    }
}
