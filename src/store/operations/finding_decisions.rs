//! Operators' decisions on listed findings: differences that a reconciliation could not repair. Only findings of the
//! latest reconciliation of a day can be decided. The next reconciliation of the day takes the decisions over.

use std::collections::BTreeSet;

use database::{StoreError, Transaction};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, ExprTrait, QueryFilter, QueryOrder};

use crate::domain::kernel::audit::AuditEntry;
use crate::domain::reconciliation::day::{FindingAction, OperatorDecision, Reconciliation};
use crate::store::Store;
use crate::store::operations::audit;
use crate::store::operations::reconciliation_finding_row as finding;
use crate::store::operations::reconciliation_row::{Column, Entity};

/// The result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The number of changed findings. All others already had this decision or, if they were to be opened, were open.
    Changed(usize),
    /// The reconciliation is not the latest of its day: the day was compared again, or this comparison is not complete.
    NotLatest,
    /// One of the numbers does not belong to a listed finding.
    NotListed,
}

/// Stores an operator's decision on listed findings of a reconciliation; `None` opens them again. The audit records
/// which findings were changed.
pub async fn decide(
    store: &Store,
    reconciliation: &Reconciliation,
    numbers: &[u32],
    decision: Option<&OperatorDecision>,
    entry: AuditEntry,
) -> Result<DecisionOutcome, StoreError> {
    let numbers: BTreeSet<u32> = numbers.iter().copied().collect();
    let tx = store.begin().await?;
    // This update locks the row. So the next reconciliation of the day waits, and then takes over the decisions made
    // here.
    let locked = Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(true))
        .filter(latest_condition(reconciliation))
        .exec(&tx)
        .await?;
    if locked.rows_affected == 0 {
        return Ok(DecisionOutcome::NotLatest);
    }
    let wanted = numbers.len();
    let listed = finding::Entity::find()
        .filter(findings_condition(reconciliation, numbers))
        .filter(finding::Column::Action.eq(FindingAction::Listed.as_str()))
        .order_by_asc(finding::Column::Number)
        .all(&tx)
        .await?;
    if listed.len() < wanted {
        return Ok(DecisionOutcome::NotListed);
    }
    let reason = decision.map(|made| made.reason.as_str());
    let changed: Vec<_> = listed
        .into_iter()
        .filter(|row| row.decided_because.as_deref() != reason)
        .collect();
    if changed.is_empty() {
        return Ok(DecisionOutcome::Changed(0));
    }
    write_decision(&tx, reconciliation, &changed, decision).await?;
    let named = changed
        .iter()
        .map(|row| format!("{} {}", row.kind, row.irn));
    let named = named.collect::<Vec<_>>().join(", ");
    let word = if decision.is_some() {
        "decided"
    } else {
        "listed"
    };
    let entry = entry.with_states(None, Some(format!("{word}: {named}")));
    audit::append(&tx, &[entry]).await?;
    tx.commit().await?;
    Ok(DecisionOutcome::Changed(changed.len()))
}

/// Writes the decision on these findings, and updates the counts of listed and decided findings.
async fn write_decision(
    tx: &Transaction,
    reconciliation: &Reconciliation,
    changed: &[finding::Model],
    decision: Option<&OperatorDecision>,
) -> Result<(), StoreError> {
    let numbers = changed.iter().map(|row| row.number.unsigned_abs());
    let at = decision.map(|made| made.decided_at.as_microsecond());
    let by = decision.map(|made| made.operator_id);
    let reason = decision.map(|made| made.reason.as_str());
    finding::Entity::update_many()
        .col_expr(finding::Column::DecidedAt, Expr::value(at))
        .col_expr(finding::Column::DecidedBy, Expr::value(by))
        .col_expr(finding::Column::DecidedBecause, Expr::value(reason))
        .filter(findings_condition(reconciliation, numbers.collect()))
        .exec(tx)
        .await?;
    let is_decided = decision.is_some();
    let moved = changed
        .iter()
        .filter(|row| row.decided_at.is_some() != is_decided);
    let moved = i64::try_from(moved.count()).unwrap_or(i64::MAX);
    let moved = if is_decided { moved } else { -moved };
    Entity::update_many()
        .col_expr(Column::Listed, Expr::col(Column::Listed).sub(moved))
        .col_expr(Column::Decided, Expr::col(Column::Decided).add(moved))
        .filter(latest_condition(reconciliation))
        .exec(tx)
        .await?;
    Ok(())
}

fn latest_condition(reconciliation: &Reconciliation) -> Condition {
    Condition::all()
        .add(Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .add(Column::Id.eq(reconciliation.id.to_string()))
        .add(Column::IsLatest.eq(true))
}

fn findings_condition(reconciliation: &Reconciliation, numbers: BTreeSet<u32>) -> Condition {
    Condition::all()
        .add(finding::Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .add(finding::Column::ReconciliationId.eq(reconciliation.id.to_string()))
        .add(finding::Column::Number.is_in(numbers))
}
