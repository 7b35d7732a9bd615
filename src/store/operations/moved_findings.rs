//! A difference is listed once, on the day that was compared last. An invoice with entries of our log on several days is
//! compared for each of them. So the comparison of a day takes over what the latest comparisons of the other days list
//! of the same differences, with the operators' decisions on them.

use std::collections::{BTreeMap, BTreeSet};

use database::{StoreError, Transaction, statement_portions};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait,
};

use crate::domain::reconciliation::day::{Finding, FindingAction, Reconciliation, RecordedFinding};
use crate::store::operations::reconciliation_finding_row as finding;
use crate::store::operations::reconciliation_row::{Column, Entity};

/// Removes the findings of the same kinds about the same invoices as `findings` from the latest reconciliations of the
/// taxpayer's other days, and from their counts. Returns what was removed.
pub(super) async fn take_over(
    tx: &Transaction,
    one: &Reconciliation,
    findings: &[Finding],
) -> Result<Vec<RecordedFinding>, StoreError> {
    let mut taken = Vec::new();
    for portion in statement_portions(findings) {
        let condition = elsewhere_condition(one, portion);
        if !lock_reconciliations(tx, one, condition.clone()).await? {
            continue;
        }
        let rows = finding::Entity::find()
            .filter(condition)
            .order_by_asc(finding::Column::ReconciliationId)
            .order_by_asc(finding::Column::Number)
            .all(tx)
            .await?;
        let repeated: Vec<_> = rows
            .into_iter()
            .filter(|row| is_repeated(row, portion))
            .collect();
        remove_from_reports(tx, one, &repeated).await?;
        for row in repeated {
            taken.push(RecordedFinding::try_from(row)?);
        }
    }
    Ok(taken)
}

/// Selects what the latest reconciliations of the other days list about the invoices of `findings`.
fn elsewhere_condition(one: &Reconciliation, findings: &[Finding]) -> Condition {
    let latest = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::TaxpayerId.eq(one.taxpayer_id.0))
        .filter(Column::IsLatest.eq(true))
        .filter(Column::Day.ne(one.day.to_string()))
        .into_query();
    let irns = findings.iter().map(|found| found.irn.as_str());
    Condition::all()
        .add(finding::Column::TaxpayerId.eq(one.taxpayer_id.0))
        .add(finding::Column::Action.eq(FindingAction::Listed.as_str()))
        .add(finding::Column::Irn.is_in(irns))
        .add(finding::Column::ReconciliationId.in_subquery(latest))
}

/// Locks the reconciliations that have such findings, so that an operator's decision on one of them comes before or
/// after this. Returns true if there are any.
async fn lock_reconciliations(
    tx: &Transaction,
    one: &Reconciliation,
    condition: Condition,
) -> Result<bool, StoreError> {
    let ids: Vec<String> = finding::Entity::find()
        .select_only()
        .column(finding::Column::ReconciliationId)
        .filter(condition)
        .into_tuple()
        .all(tx)
        .await?;
    let ids: BTreeSet<String> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(false);
    }
    Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(true))
        .filter(Column::TaxpayerId.eq(one.taxpayer_id.0))
        .filter(Column::Id.is_in(ids))
        .filter(Column::IsLatest.eq(true))
        .exec(tx)
        .await?;
    Ok(true)
}

fn is_repeated(row: &finding::Model, findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|found| found.irn == row.irn && found.kind.as_str() == row.kind)
}

async fn remove_from_reports(
    tx: &Transaction,
    one: &Reconciliation,
    repeated: &[finding::Model],
) -> Result<(), StoreError> {
    let mut by_reconciliation: BTreeMap<&str, Vec<&finding::Model>> = BTreeMap::new();
    for row in repeated {
        let id = row.reconciliation_id.as_str();
        by_reconciliation.entry(id).or_default().push(row);
    }
    for (id, rows) in by_reconciliation {
        finding::Entity::delete_many()
            .filter(finding::Column::TaxpayerId.eq(one.taxpayer_id.0))
            .filter(finding::Column::ReconciliationId.eq(id))
            .filter(finding::Column::Number.is_in(rows.iter().map(|row| row.number)))
            .exec(tx)
            .await?;
        let decided = rows.iter().filter(|row| row.decided_at.is_some()).count();
        let open = rows.len() - decided;
        let decided = i64::try_from(decided).unwrap_or(i64::MAX);
        let open = i64::try_from(open).unwrap_or(i64::MAX);
        Entity::update_many()
            .col_expr(Column::Listed, Expr::col(Column::Listed).sub(open))
            .col_expr(Column::Decided, Expr::col(Column::Decided).sub(decided))
            .filter(Column::TaxpayerId.eq(one.taxpayer_id.0))
            .filter(Column::Id.eq(id))
            .exec(tx)
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use database::page::Page;
    use jiff::Timestamp;
    use timing::clock;

    use super::*;
    use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::reconciliation::day::{AskedBy, Decision, ReconciliationCounts};
    use crate::domain::reconciliation::finding_kind::FindingKind;
    use crate::store::Store;
    use crate::store::operations::finding_decisions::{self, DecisionOutcome};
    use crate::store::operations::reconciliations::{self, open_findings_by_kind};
    use crate::store::testing::stores;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn listed(no: &str) -> Finding {
        Finding {
            kind: FindingKind::MissingRemotely,
            irn: format!("{no}-94AD90FB-20261121"),
            local: Some("submit succeeded".to_owned()),
            remote: None,
            action: FindingAction::Listed,
            detail: "ask".to_owned(),
        }
    }

    async fn compare(
        store: &Store,
        taxpayer: i64,
        day: &str,
        findings: &[Finding],
    ) -> Reconciliation {
        let id = clock::new_id();
        let day = day.parse().unwrap();
        let asked = Reconciliation::new(id, TaxpayerId(taxpayer), day, AskedBy::Operator, at(1));
        let listed = findings
            .iter()
            .filter(|one| one.action == FindingAction::Listed);
        let counts = ReconciliationCounts {
            listed: u32::try_from(listed.count()).unwrap(),
            ..ReconciliationCounts::default()
        };
        let one = asked.begin(at(1)).finish(counts, at(2));
        let tx = store.begin().await.unwrap();
        let one = reconciliations::finish(&tx, one, findings.to_vec())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        one
    }

    /// Returns the counts of listed, decided and stored findings.
    async fn counted(store: &Store, one: &Reconciliation) -> [usize; 3] {
        let stored = reconciliations::with_id(store, one.id).await.unwrap();
        let counts = stored.unwrap().counts;
        let page = Page {
            number: 1,
            per_page: 10,
        };
        let found = reconciliations::findings(store, one, page).await.unwrap();
        [counts.listed as usize, counts.decided as usize, found.len()]
    }

    async fn decide_first(store: &Store, one: &Reconciliation) {
        let entry = AuditEntry::new(
            Actor::Operator(5),
            AuditAction::DecideFindings,
            &one.id,
            at(3),
        );
        let decision = Decision {
            operator_id: 5,
            reason: "a letter".to_owned(),
            decided_at: at(3),
        };
        let outcome = finding_decisions::decide(store, one, &[1], Some(&decision), entry).await;
        assert_eq!(outcome.unwrap(), DecisionOutcome::Changed(1));
    }

    /// One day lists the invoices A and B, and A is decided. The comparison of the next day finds this.
    #[tokio::test]
    async fn a_difference_is_listed_on_the_day_that_was_compared_last_and_decided_once() {
        let other_kind = Finding {
            kind: FindingKind::PaymentDiffers,
            ..listed("B")
        };
        let changed = Finding {
            local: Some("invoice cancelled".to_owned()),
            ..listed("A")
        };
        let repaired = Finding {
            action: FindingAction::Repaired,
            ..listed("B")
        };
        let cases = [
            ("nothing", vec![], [1, 1, 2], [0, 0, 0]),
            ("the decided one", vec![listed("A")], [1, 0, 1], [0, 1, 1]),
            ("both", vec![listed("B"), listed("A")], [0, 0, 0], [1, 1, 2]),
            ("it changed", vec![changed], [1, 0, 1], [1, 0, 1]),
            ("a repair", vec![repaired], [0, 1, 1], [0, 0, 1]),
            ("another kind", vec![other_kind], [1, 1, 2], [1, 0, 1]),
            ("another invoice", vec![listed("C")], [1, 1, 2], [1, 0, 1]),
        ];
        for test in stores().await {
            let store = &test.store;
            for (taxpayer, (name, found, first_after, second_after)) in (100..).zip(&cases) {
                let both = [listed("A"), listed("B")];
                let first = compare(store, taxpayer, "2026-11-29", &both).await;
                decide_first(store, &first).await;
                compare(store, taxpayer + 1_000, "2026-11-29", &both).await;
                let second = compare(store, taxpayer, "2026-11-30", found).await;
                assert_eq!(counted(store, &first).await, *first_after, "{name}");
                assert_eq!(counted(store, &second).await, *second_after, "{name}");
            }
            let open = open_findings_by_kind(store).await.unwrap();
            let sum: u64 = open.iter().map(|(_, group)| group.count).sum();
            // The cases have 9 open differences, and both of each other taxpayer are open.
            assert_eq!(sum, 9 + 2 * 7, "each once");
        }
    }
}
