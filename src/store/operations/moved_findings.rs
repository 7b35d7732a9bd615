//! Moves findings between the reconciliations of different days. An invoice with log entries on several days is
//! compared with the authority's ledger for each of them, but a difference is listed once: on the day that was compared
//! last. So a comparison removes findings from the latest comparisons of the other days. It removes each difference
//! that it lists again, and keeps the operator's decision on it. It also removes the undecided findings whose
//! differences it has repaired, and all other undecided findings about invoices that it has compared.

use std::collections::{BTreeMap, BTreeSet};

use database::{StoreError, Transaction, statement_portions};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};

use crate::domain::invoice::irn::Irn;
use crate::domain::reconciliation::day::{
    DayFindings, FindingAction, Reconciliation, RecordedFinding,
};
use crate::store::operations::reconciliation_finding_row as finding;
use crate::store::operations::reconciliation_row::{Column, Entity, IS_LATEST};

/// Deletes the findings of the taxpayer's other days that this comparison replaces, and subtracts them from the counts
/// of their reconciliations. Returns the deleted findings.
pub(super) async fn take_over_findings(
    tx: &Transaction,
    reconciliation: &Reconciliation,
    found: &DayFindings,
) -> Result<Vec<RecordedFinding>, StoreError> {
    if found.findings.is_empty() && found.compared_keys.is_empty() {
        return Ok(Vec::new());
    }
    let before = find_replaced_findings(tx, reconciliation, found).await?;
    let ids: BTreeSet<String> = before
        .into_iter()
        .map(|row| row.reconciliation_id)
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    lock_reconciliations(tx, reconciliation, &ids).await?;
    // Reads the findings again: before the lock, an operator may have decided one of them or opened it again.
    let mut replaced = find_replaced_findings(tx, reconciliation, found).await?;
    replaced.retain(|row| ids.contains(&row.reconciliation_id));
    delete_replaced_findings(tx, reconciliation, &replaced).await?;
    replaced
        .into_iter()
        .map(RecordedFinding::try_from)
        .collect()
}

/// Loads the findings that the latest reconciliations of the other days list and that this comparison replaces. All
/// listed findings of the taxpayer are read, because they are few beside the invoices of a day.
async fn find_replaced_findings(
    tx: &Transaction,
    reconciliation: &Reconciliation,
    found: &DayFindings,
) -> Result<Vec<finding::Model>, StoreError> {
    let mut rows = select_findings_on_other_days(reconciliation)
        .all(tx)
        .await?;
    let present = FoundDifferences::new(found);
    rows.retain(|row| present.replaces_finding(row));
    Ok(rows)
}

/// Selects the listed findings of the latest reconciliations of all days of this taxpayer except the day of
/// `reconciliation`, in the order of reconciliation and number.
fn select_findings_on_other_days(reconciliation: &Reconciliation) -> Select<finding::Entity> {
    let latest = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(Expr::cust(IS_LATEST))
        .filter(Column::Day.ne(reconciliation.day.to_string()))
        .into_query();
    finding::Entity::find()
        .filter(finding::Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(finding::Column::Action.eq(FindingAction::Listed.as_str()))
        .filter(finding::Column::ReconciliationId.in_subquery(latest))
        .order_by_asc(finding::Column::ReconciliationId)
        .order_by_asc(finding::Column::Number)
}

/// The differences that a comparison has found, each as its IRN and its kind.
struct FoundDifferences<'f> {
    listed: BTreeSet<(&'f str, &'f str)>,
    repaired: BTreeSet<(&'f str, &'f str)>,
    compared_keys: &'f BTreeSet<String>,
}

impl<'f> FoundDifferences<'f> {
    fn new(found: &'f DayFindings) -> Self {
        Self {
            listed: differences_with_action(found, FindingAction::Listed),
            repaired: differences_with_action(found, FindingAction::Repaired),
            compared_keys: &found.compared_keys,
        }
    }

    /// True if this comparison replaces a finding of an earlier one. A decided finding is replaced only if its
    /// difference is listed again: otherwise the report of its day goes on showing what was decided and why.
    fn replaces_finding(&self, row: &finding::Model) -> bool {
        let difference = (row.irn.as_str(), row.kind.as_str());
        if self.listed.contains(&difference) {
            return true;
        }
        row.decided_at.is_none()
            && (self.repaired.contains(&difference) || self.has_compared(&row.irn))
    }

    /// True if the invoice with this IRN is one of those that this comparison has compared.
    fn has_compared(&self, irn: &str) -> bool {
        Irn::parse(irn).is_ok_and(|irn| self.compared_keys.contains(&irn.key()))
    }
}

fn differences_with_action(found: &DayFindings, action: FindingAction) -> BTreeSet<(&str, &str)> {
    let findings = found.findings.iter();
    let findings = findings.filter(|finding| finding.action == action);
    findings
        .map(|finding| (finding.irn.as_str(), finding.kind.as_str()))
        .collect()
}

/// Locks these reconciliations for the rest of the transaction, so that no operator decides one of their findings
/// meanwhile.
async fn lock_reconciliations(
    tx: &Transaction,
    reconciliation: &Reconciliation,
    ids: &BTreeSet<String>,
) -> Result<(), StoreError> {
    Entity::update_many()
        .col_expr(Column::IsLatest, Expr::value(true))
        .filter(Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
        .filter(Column::Id.is_in(ids.iter().map(String::as_str)))
        .filter(Column::IsLatest.eq(true))
        .exec(tx)
        .await?;
    Ok(())
}

/// Deletes these findings and subtracts them from the counts of their reconciliations.
async fn delete_replaced_findings(
    tx: &Transaction,
    reconciliation: &Reconciliation,
    replaced: &[finding::Model],
) -> Result<(), StoreError> {
    let mut by_reconciliation: BTreeMap<&str, Vec<&finding::Model>> = BTreeMap::new();
    for row in replaced {
        let id = row.reconciliation_id.as_str();
        by_reconciliation.entry(id).or_default().push(row);
    }
    for (id, rows) in by_reconciliation {
        for portion in statement_portions(&rows) {
            finding::Entity::delete_many()
                .filter(finding::Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
                .filter(finding::Column::ReconciliationId.eq(id))
                .filter(finding::Column::Number.is_in(portion.iter().map(|row| row.number)))
                .exec(tx)
                .await?;
        }
        let decided = rows.iter().filter(|row| row.decided_at.is_some()).count();
        let open = rows.len() - decided;
        let decided = i64::try_from(decided).unwrap_or(i64::MAX);
        let open = i64::try_from(open).unwrap_or(i64::MAX);
        Entity::update_many()
            .col_expr(Column::Listed, Expr::col(Column::Listed).sub(open))
            .col_expr(Column::Decided, Expr::col(Column::Decided).sub(decided))
            .filter(Column::TaxpayerId.eq(reconciliation.taxpayer_id.0))
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
    use crate::domain::reconciliation::day::{
        AskedBy, Finding, OperatorDecision, ReconciliationCounts,
    };
    use crate::domain::reconciliation::finding_kind::FindingKind;
    use crate::store::Store;
    use crate::store::operations::finding_decisions::{self, DecisionOutcome};
    use crate::store::operations::reconciliations::{self, count_open_findings_by_kind};
    use crate::store::testing::{query_plan, stores};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The service id is in lower case, which is not the spelling of a key.
    fn listed(no: &str) -> Finding {
        Finding {
            kind: FindingKind::MissingRemotely,
            irn: format!("{no}-94ad90fb-20261121"),
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
        found: &DayFindings,
    ) -> Reconciliation {
        let id = clock::new_id();
        let day = day.parse().unwrap();
        let asked = Reconciliation::new(id, TaxpayerId(taxpayer), day, AskedBy::Operator, at(1));
        let listed = found.findings.iter();
        let listed = listed.filter(|one| one.action == FindingAction::Listed);
        let counts = ReconciliationCounts {
            listed: u32::try_from(listed.count()).unwrap(),
            ..ReconciliationCounts::default()
        };
        let one = asked.begin(at(1)).finish(counts, at(2));
        let tx = store.begin().await.unwrap();
        let one = reconciliations::finish(&tx, one, found.clone())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        one
    }

    /// Returns the counts of listed, decided and stored findings.
    async fn counted(store: &Store, one: &Reconciliation) -> [usize; 3] {
        let stored = reconciliations::find_by_id(store, one.id).await.unwrap();
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
        let decision = OperatorDecision {
            operator_id: 5,
            reason: "a letter".to_owned(),
            decided_at: at(3),
        };
        let outcome = finding_decisions::decide(store, one, &[1], Some(&decision), entry).await;
        assert_eq!(outcome.unwrap(), DecisionOutcome::Changed(1));
    }

    /// The findings of a comparison that had a definite result for these invoices.
    fn day_findings(findings: Vec<Finding>, compared: &str) -> DayFindings {
        let keys = compared.split_whitespace();
        let keys = keys.map(|no| format!("{no}-94AD90FB-20261121"));
        DayFindings {
            findings,
            compared_keys: keys.collect(),
        }
    }

    /// The name, what the second day finds and which invoices it compared, and the counts of both days after it.
    type Case = (
        &'static str,
        Vec<Finding>,
        &'static str,
        [usize; 3],
        [usize; 3],
    );

    fn cases() -> Vec<Case> {
        let other_kind = Finding {
            kind: FindingKind::PaymentDiffers,
            ..listed("B")
        };
        let changed = Finding {
            local: Some("invoice cancelled".to_owned()),
            ..listed("A")
        };
        let repaired = |no: &str| Finding {
            action: FindingAction::Repaired,
            ..listed(no)
        };
        let other = vec![other_kind];
        let both = vec![listed("B"), listed("A")];
        vec![
            ("nothing", vec![], "", [1, 1, 2], [0, 0, 0]),
            ("agreed", vec![], "B", [0, 1, 1], [0, 0, 0]),
            ("both agreed", vec![], "A B", [0, 1, 1], [0, 0, 0]),
            ("others agreed", vec![], "C", [1, 1, 2], [0, 0, 0]),
            (
                "the decided one",
                vec![listed("A")],
                "A",
                [1, 0, 1],
                [0, 1, 1],
            ),
            ("both", both, "A B", [0, 0, 0], [1, 1, 2]),
            ("it changed", vec![changed], "A", [1, 0, 1], [1, 0, 1]),
            ("a repair", vec![repaired("B")], "B", [0, 1, 1], [0, 0, 1]),
            (
                "a repair in part",
                vec![repaired("B")],
                "",
                [0, 1, 1],
                [0, 0, 1],
            ),
            (
                "a decided repair",
                vec![repaired("A")],
                "A",
                [1, 1, 2],
                [0, 0, 1],
            ),
            ("another kind", other.clone(), "B", [0, 1, 1], [1, 0, 1]),
            ("another kind in part", other, "", [1, 1, 2], [1, 0, 1]),
            (
                "another invoice",
                vec![listed("C")],
                "C",
                [1, 1, 2],
                [1, 0, 1],
            ),
        ]
    }

    /// One day lists the invoices A and B, and A is decided. The comparison of the next day finds this.
    #[tokio::test]
    async fn a_difference_is_listed_on_the_day_that_was_compared_last_and_decided_once() {
        let cases = cases();
        let both = day_findings(vec![listed("A"), listed("B")], "A B");
        for test in stores().await {
            let store = &test.store;
            let mut expected_open = 0;
            for (taxpayer, case) in (100..).zip(&cases) {
                let (name, found, compared, first_after, second_after) = case;
                let found = day_findings(found.clone(), compared);
                let first = compare(store, taxpayer, "2026-11-29", &both).await;
                decide_first(store, &first).await;
                compare(store, taxpayer + 1_000, "2026-11-29", &both).await;
                let second = compare(store, taxpayer, "2026-11-30", &found).await;
                assert_eq!(counted(store, &first).await, *first_after, "{name}");
                assert_eq!(counted(store, &second).await, *second_after, "{name}");
                // Both differences of the other taxpayer stay open.
                expected_open += first_after[0] + second_after[0] + 2;
            }
            let open = count_open_findings_by_kind(store).await.unwrap();
            let sum: u64 = open.iter().map(|(_, group)| group.count).sum();
            assert_eq!(usize::try_from(sum).unwrap(), expected_open, "each once");
        }
    }

    #[tokio::test]
    async fn other_days_are_read_without_a_look_at_other_taxpayers() {
        // SQLite only: PostgreSQL's plan depends on the number of reconciliations.
        for test in stores().await.into_iter().take(1) {
            let day = "2026-01-15".parse().unwrap();
            let id = clock::new_id();
            let one = Reconciliation::new(id, TaxpayerId(7), day, AskedBy::Timer, at(1));
            let query = select_findings_on_other_days(&one).build(test.store.backend());
            let values = query.values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &query.sql, values).await;
            let reads = plan.iter().filter(|step| step.contains("SEARCH"));
            let is_own = |step: &String| step.contains("(taxpayer_id=?");
            assert!(reads.clone().all(is_own) && reads.count() == 2, "{plan:?}");
        }
    }
}
