//! The tabs above the list of invoices, which group invoices by what is to be done, and the number of invoices in each.
//! The counts are limited, so that the page of a large account is as fast as any other.

use database::StoreError;
use database::column::RowRef;
use database::sql::SqlOnce;
use jiff::civil::Date;
use sea_orm::{ConnectionTrait, Statement};

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::invoices::list_query::{UNCANCELLED_CONDITION, UNSETTLED_CONDITION};
use crate::store::invoices::list_sort::DUE_DATE_SQL;
use crate::store::invoices::owed_condition::still_owed_condition;
use crate::store::invoices::refunds_due;

words! {
    /// A tab above the list of invoices.
    WorkTab {
        Attention = "attention",
        Draft = "draft",
        ToSubmit = "to-submit",
        Waiting = "waiting",
        Rejected = "rejected",
        Overdue = "overdue",
        RefundDue = "refund-due",
        Signed = "signed",
    }
}

/// The number of invoices in a tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TabCount {
    pub tab: WorkTab,
    pub count: u64,
    /// True if there may be more invoices, because the count stopped at its limit.
    pub is_more: bool,
}

/// The numbers of invoices that were not submitted and have missed their legal deadline. Both are lower bounds if the
/// tab has more invoices than were looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateCounts {
    pub drafts: u64,
    pub to_submit: u64,
}

/// The first day of issue, in each category, whose invoices are not late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstDaysInTime {
    pub b2b: Date,
    pub b2c: Date,
    pub b2g: Date,
}

/// The maximum number of invoices with a past due date that are checked for unpaid ones, latest due date first.
const DUE_LOOKED_AT_MAX: i64 = 2_000;

const DRAFT_CONDITION: &str = "status = 'draft' AND authority_status = 'PENDING'";

/// The condition of invoices that are approved and were not submitted. One that was paid meanwhile has the status
/// "paid".
const TO_SUBMIT_CONDITION: &str = "status IN ('approved', 'paid') AND authority_status = 'PENDING'";

/// The index that SQLite must use to count drafts and invoices that can be submitted. SQLite would otherwise choose the
/// index of the list, because it also has the authority's status, and read all invoices of the account in it.
const BY_STATUS: &str = "INDEXED BY invoices_by_taxpayer_id_status_created_at_id ";

impl WorkTab {
    /// Returns the SQL condition of the tab's invoices; `None` for overdue invoices and for refunds, which are counted in
    /// another way.
    fn condition(self) -> Option<String> {
        let unsettled = |statuses: &str| {
            format!(
                "authority_status IN ({statuses}) AND {UNSETTLED_CONDITION} AND {UNCANCELLED_CONDITION}"
            )
        };
        Some(match self {
            Self::Attention => unsettled("'REJECTED', 'FAILED'"),
            Self::Waiting => unsettled("'QUEUED', 'VALIDATED'"),
            Self::Rejected => unsettled("'REJECTED'"),
            Self::Draft => DRAFT_CONDITION.to_owned(),
            Self::ToSubmit => TO_SUBMIT_CONDITION.to_owned(),
            Self::Signed => "status = 'submitted'".to_owned(),
            Self::Overdue | Self::RefundDue => return None,
        })
    }

    /// Returns the maximum number of rows that are looked at to count the tab's invoices; `None` if it has none.
    fn looked_at_max(self) -> Option<i64> {
        match self {
            Self::Overdue => Some(DUE_LOOKED_AT_MAX),
            Self::RefundDue => Some(refunds_due::SOURCES_LOOKED_AT_MAX),
            _ => None,
        }
    }
}

static COUNTS: SqlOnce = SqlOnce::new(|dialect| {
    let count = |tab: &WorkTab| {
        let condition = tab.condition()?;
        let index = match tab {
            WorkTab::Draft | WorkTab::ToSubmit if dialect.ignores_selectivity() => BY_STATUS,
            _ => "",
        };
        Some(format!(
            "SELECT '{tab}' AS tab, (SELECT COUNT(*) FROM (SELECT 1 FROM invoices {index}\
             WHERE taxpayer_id = $1 AND {condition} LIMIT $2) AS part) AS invoices, CAST(0 AS bigint) AS looked_at"
        ))
    };
    let was_due = format!(
        "SELECT taxpayer_id, id, invoice_no, irn_key, currency, payment_status, status, is_credit_note, is_sale, paid, payable, signed_payable FROM invoices WHERE taxpayer_id = $1 AND {DUE_DATE_SQL} < $3 \
         ORDER BY {DUE_DATE_SQL} DESC, created_at DESC, id DESC LIMIT {DUE_LOOKED_AT_MAX}"
    );
    let overdue = format!(
        "SELECT 'overdue' AS tab, (SELECT COUNT(*) FROM ({was_due}) AS part \
         WHERE payment_status NOT IN ('PAID', 'REJECTED') AND {}) AS invoices, \
         (SELECT COUNT(*) FROM ({was_due}) AS part) AS looked_at",
        still_owed_condition("part")
    );
    let [refunds, looked_at] = refunds_due::count_sql();
    let refund_due =
        format!("SELECT 'refund-due' AS tab, {refunds} AS invoices, {looked_at} AS looked_at");
    let counts = WorkTab::ALL.iter().filter_map(count);
    let all: Vec<_> = counts.chain([overdue, refund_due]).collect();
    all.join(" UNION ALL ")
});

/// Counts the invoices in each tab. Stops at `max` for each tab. Invoices due before `today` are overdue.
pub async fn count(
    store: &Store,
    taxpayer: TaxpayerId,
    today: Date,
    max: u64,
) -> Result<Vec<TabCount>, StoreError> {
    let backend = store.backend();
    let limit = i64::try_from(max.saturating_add(1)).unwrap_or(i64::MAX);
    let values = [taxpayer.0.into(), limit.into(), today.to_string().into()];
    let statement = Statement::from_sql_and_values(backend, COUNTS.get(backend), values);
    let rows = store.reader().query_all_raw(statement).await?;
    let mut counts = Vec::with_capacity(WorkTab::ALL.len());
    for row in rows {
        let name: String = row.try_get("", "tab")?;
        let count: i64 = row.try_get("", "invoices")?;
        let looked_at: i64 = row.try_get("", "looked_at")?;
        let at = RowRef {
            table: "invoices",
            id: "tab",
        };
        let tab: WorkTab = at.parse(&name)?;
        let count = count.unsigned_abs();
        counts.push(TabCount {
            tab,
            count: count.min(max),
            is_more: count > max || tab.looked_at_max() == Some(looked_at),
        });
    }
    counts.sort_by_key(|one| one.tab);
    Ok(counts)
}

static LATE_COUNTS: SqlOnce = SqlOnce::new(|dialect| {
    let index = if dialect.ignores_selectivity() {
        BY_STATUS
    } else {
        ""
    };
    let late = |condition: &str| {
        format!(
            "(SELECT COUNT(*) FROM (SELECT category, invoice_date FROM invoices {index}\
             WHERE taxpayer_id = $1 AND {condition} LIMIT $2) AS part \
             WHERE (category = 'B2B' AND invoice_date < $3) OR (category = 'B2C' AND invoice_date < $4) \
             OR (category = 'B2G' AND invoice_date < $5))"
        )
    };
    format!(
        "SELECT {} AS drafts, {} AS to_submit",
        late(DRAFT_CONDITION),
        late(TO_SUBMIT_CONDITION)
    )
});

/// Counts the drafts and the approved invoices that have missed their legal deadline, among up to `max` of each.
pub async fn count_late(
    store: &Store,
    taxpayer: TaxpayerId,
    days: FirstDaysInTime,
    max: u64,
) -> Result<LateCounts, StoreError> {
    let backend = store.backend();
    let values = [
        taxpayer.0.into(),
        i64::try_from(max).unwrap_or(i64::MAX).into(),
        days.b2b.to_string().into(),
        days.b2c.to_string().into(),
        days.b2g.to_string().into(),
    ];
    let statement = Statement::from_sql_and_values(backend, LATE_COUNTS.get(backend), values);
    let Some(row) = store.reader().query_one_raw(statement).await? else {
        return Ok(LateCounts::default());
    };
    let count = |name: &str| row.try_get("", name).map(i64::unsigned_abs);
    Ok(LateCounts {
        drafts: count("drafts")?,
        to_submit: count("to_submit")?,
    })
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn each_count_walks_through_an_index_and_an_empty_account_has_none() {
        for test in stores().await {
            let today = Date::constant(2026, 3, 1);
            let counts = count(&test.store, TaxpayerId(7), today, 10).await.unwrap();
            assert_eq!(counts.len(), WorkTab::ALL.len());
            assert!(counts.iter().all(|one| one.count == 0 && !one.is_more));
            // PostgreSQL goes by its statistics, and knows no rows here.
            if test.store.backend() == DbBackend::Sqlite {
                let values = vec![7_i64.into(), 10_i64.into(), "2026-03-01".into()];
                let sql = COUNTS.get(test.store.backend());
                let plan = query_plan(&test.store, sql, values).await.join("\n");
                assert!(!plan.contains("SCAN invoices"), "{plan}");
                assert_eq!(plan.matches("invoices_unsettled").count(), 3, "{plan}");
                assert!(!plan.contains("invoices_as_listed"), "{plan}");
            }
        }
    }

    /// Adds a row for each of these statuses, authority statuses, categories and days of issue.
    async fn add_invoices(store: &Store, rows: &[[&str; 4]]) {
        let rows = (1..).zip(rows);
        let rows = rows.map(|(id, [status, authority, category, day])| {
            format!(
                "(7, {id}, '{id}', '{id}', '{id}', '{category}', '381', '{day}', 'NGN', '{{}}', '[]', '{status}', \
                 'PENDING', '1', '0', '{authority}', '', 1 = 0, '{{}}', '', {id}, {id})"
            )
        });
        let rows: Vec<_> = rows.collect();
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             extras, content_digest, created_at, updated_at) VALUES {}",
            rows.join(", ")
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn what_was_not_submitted_is_counted_with_what_is_late_of_it() {
        let days = FirstDaysInTime {
            b2b: Date::constant(2026, 2, 26),
            b2c: Date::constant(2026, 2, 28),
            b2g: Date::constant(2026, 2, 26),
        };
        for test in stores().await {
            add_invoices(
                &test.store,
                &[
                    ["draft", "PENDING", "B2B", "2026-02-25"],
                    ["draft", "PENDING", "B2B", "2026-02-26"],
                    ["draft", "REJECTED", "B2B", "2026-02-25"],
                    ["approved", "PENDING", "B2C", "2026-02-27"],
                    ["approved", "PENDING", "B2G", "2026-02-27"],
                    ["approved", "REJECTED", "B2C", "2026-02-27"],
                    ["paid", "PENDING", "B2B", "2026-01-01"],
                    ["paid", "QUEUED", "B2B", "2026-01-01"],
                    ["submitted", "SUBMITTED", "B2B", "2026-01-01"],
                    ["cancelled", "PENDING", "B2B", "2026-01-01"],
                ],
            )
            .await;
            let today = Date::constant(2026, 3, 1);
            let counts = count(&test.store, TaxpayerId(7), today, 10).await.unwrap();
            let found: Vec<_> = counts
                .iter()
                .map(|one| format!("{} {}", one.tab, one.count))
                .collect();
            assert_eq!(
                found.join(", "),
                "attention 2, draft 2, to-submit 3, waiting 1, rejected 2, overdue 0, refund-due 0, signed 1"
            );
            for (max, drafts, to_submit) in [(10, 1, 2), (0, 0, 0)] {
                let late = count_late(&test.store, TaxpayerId(7), days, max).await;
                let expected = LateCounts { drafts, to_submit };
                assert_eq!(late.unwrap(), expected, "{max}");
            }
            if test.store.backend() == DbBackend::Sqlite {
                let day = || "2026-03-01".into();
                let values = vec![7_i64.into(), 10_i64.into(), day(), day(), day()];
                let sql = LATE_COUNTS.get(test.store.backend());
                let plan = query_plan(&test.store, sql, values).await.join("\n");
                assert!(!plan.contains("SCAN invoices"), "{plan}");
                assert_eq!(
                    plan.matches("taxpayer_id_status_created").count(),
                    2,
                    "{plan}"
                );
            }
        }
    }
}
