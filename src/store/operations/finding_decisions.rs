//! Operators' decisions on findings that are listed. Only the latest reconciliation of a day can be decided on: what is
//! decided there is taken over by the next one.

use std::collections::BTreeSet;

use database::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, ExprTrait, PaginatorTrait, QueryFilter};

use crate::domain::kernel::audit::AuditEntry;
use crate::domain::reconciliation::day::{Decision, FindingAction, Reconciliation};
use crate::store::Store;
use crate::store::operations::audit;
use crate::store::operations::reconciliation_finding_row as finding;
use crate::store::operations::reconciliation_row::{Column, Entity};

/// What came of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// So many findings were changed. The others were decided, or open, already.
    Changed(u64),
    /// The day was compared again since, or is not compared yet.
    NotLatest,
    /// One of the numbers is not that of a listed finding.
    NotListed,
}

/// Decides listed findings of a reconciliation, or opens them again where `decision` is `None`. Records a change in the
/// audit.
pub async fn decide(
    store: &Store,
    one: &Reconciliation,
    numbers: &[u32],
    decision: Option<&Decision>,
    entry: AuditEntry,
) -> Result<DecisionOutcome, StoreError> {
    let numbers: BTreeSet<u32> = numbers.iter().copied().collect();
    let wanted = numbers.len() as u64;
    let listed = Condition::all()
        .add(finding::Column::TaxpayerId.eq(one.taxpayer_id.0))
        .add(finding::Column::ReconciliationId.eq(one.id.to_string()))
        .add(finding::Column::Number.is_in(numbers))
        .add(finding::Column::Action.eq(FindingAction::Listed.as_str()));
    let latest = Condition::all()
        .add(Column::TaxpayerId.eq(one.taxpayer_id.0))
        .add(Column::Id.eq(one.id.to_string()))
        .add(Column::IsLatest.eq(true));

    let tx = store.begin().await?;
    // It locks the row, so the next reconciliation of the day waits, and takes over what is decided here.
    let locked = Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(true))
        .filter(latest.clone())
        .exec(&tx)
        .await?;
    if locked.rows_affected == 0 {
        return Ok(DecisionOutcome::NotLatest);
    }
    if finding::Entity::find()
        .filter(listed.clone())
        .count(&tx)
        .await?
        < wanted
    {
        return Ok(DecisionOutcome::NotListed);
    }
    let before = match decision {
        Some(_) => finding::Column::DecidedAt.is_null(),
        None => finding::Column::DecidedAt.is_not_null(),
    };
    let micros = decision.map(|one| one.decided_at.as_microsecond());
    let operator = decision.map(|one| one.operator_id);
    let reason = decision.map(|one| one.reason.clone());
    let changed = finding::Entity::update_many()
        .col_expr(finding::Column::DecidedAt, Expr::value(micros))
        .col_expr(finding::Column::DecidedBy, Expr::value(operator))
        .col_expr(finding::Column::DecidedBecause, Expr::value(reason))
        .filter(listed.add(before))
        .exec(&tx)
        .await?
        .rows_affected;
    if changed == 0 {
        return Ok(DecisionOutcome::Changed(0));
    }
    let moved = i64::try_from(changed).unwrap_or(i64::MAX);
    let moved = if decision.is_some() { moved } else { -moved };
    Entity::update_many()
        .col_expr(Column::Listed, Expr::col(Column::Listed).sub(moved))
        .col_expr(Column::Decided, Expr::col(Column::Decided).add(moved))
        .filter(latest)
        .exec(&tx)
        .await?;
    audit::append(&tx, &[entry]).await?;
    tx.commit().await?;
    Ok(DecisionOutcome::Changed(changed))
}
