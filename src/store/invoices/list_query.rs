//! The filters of the list of invoices, and its SQL. A query first finds the ids of a page in an index, which is
//! ordered by the filtered column or the sort key, and then by `created_at` and `id`.

use database::sql::dialect;
use jiff::Timestamp;
use jiff::civil::Date;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{ColumnTrait, Condition, DbBackend, IdenStatic, Order};

use crate::domain::kernel::codes::{AuthorityStatus, Category, PaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::invoices::customers::search_condition;
use crate::store::invoices::invoice_row::{Column, Entity};
use crate::store::invoices::list_sort::{
    InvoiceSort, SortBy, SortPlace, date_value, payable_value,
};
use crate::store::invoices::owed_condition::{OWED_CONDITION, still_owed_condition};
use crate::store::invoices::refunds_due::refund_due_filter;

/// A list of invoices: the taxpayer, the filters and the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceList {
    pub taxpayer: TaxpayerId,
    pub filters: InvoiceFilter,
    pub sort: InvoiceSort,
}

/// The filter of the list. A field that is `None` does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvoiceFilter {
    pub batch_no: Option<String>,
    /// Only invoices that have one of these workflow statuses; empty for all.
    pub statuses: Vec<WorkflowStatus>,
    pub payment_status: Option<PaymentStatus>,
    /// Only invoices that have one of these statuses at the authority; empty for all.
    pub authority_statuses: Vec<AuthorityStatus>,
    pub category: Option<Category>,
    /// The first invoice date to include. `date_to` is the last one.
    pub date_from: Option<Date>,
    pub date_to: Option<Date>,
    /// Only invoices with a due date before this day.
    pub due_before: Option<Date>,
    /// Only invoices with a due date after this day.
    pub due_after: Option<Date>,
    /// Only invoices that are overdue on this day (see `owed::find_overdue`).
    pub overdue_on: Option<Date>,
    /// Only invoices of which a part has to be paid back (see `owed::find_settlements`).
    pub refund_due: bool,
    /// Leaves out the cancelled invoices.
    pub without_cancelled: bool,
    pub currency: Option<String>,
    /// The smallest payable to include, in whichever currency. `amount_max` is the largest. Both are at least 0.
    pub amount_min: Option<Amount>,
    pub amount_max: Option<Amount>,
    pub customer_no: Option<String>,
    /// Only invoices with this text in the invoice number, the IRN, or the customer's number, name or tax number,
    /// in any case and Unicode encoding.
    pub q: Option<String>,
    pub updated_since: Option<Timestamp>,
    /// Only these invoices.
    pub ids: Option<Vec<InvoiceId>>,
}

/// The start of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart {
    /// The page starts after this many invoices.
    At(u64),
    /// The page starts after this place, even if new invoices have arrived.
    After(SortPlace),
}

/// Selects the index that SQLite uses, because SQLite estimates the number of matching rows badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexHint {
    backend: DbBackend,
    /// True if SQLite must not use the index of a filtered column, for one of two reasons. Either it finds the rows by
    /// their ids. Or many rows match, and no index has them in the order of the list: then it reads the rows of the
    /// taxpayer in this order until the page is full.
    is_by_order: bool,
    /// True if few rows match. All of them are then found and sorted, because in the order of the list they may be far
    /// apart.
    is_sorted: bool,
}

/// If at most this many rows match, the query finds all of them and sorts them.
const SORTED_ROWS_MAX: u64 = 10_000;

impl IndexHint {
    /// Leaves the choice of the index to the database.
    pub(super) fn without_hint(backend: DbBackend) -> Self {
        Self {
            backend,
            is_by_order: false,
            is_sorted: false,
        }
    }

    /// Returns the hint for a query that finds its rows by their ids.
    pub(super) fn hint_for_ids(backend: DbBackend) -> Self {
        Self {
            is_by_order: dialect(backend).ignores_selectivity(),
            ..Self::without_hint(backend)
        }
    }

    /// Returns the hint for a query of a list that has `total` invoices.
    pub(super) fn hint_for_list(backend: DbBackend, list: &InvoiceList, total: u64) -> Self {
        let is_guessed =
            dialect(backend).ignores_selectivity() && list.filters != InvoiceFilter::default();
        let is_sorted = is_guessed && total <= SORTED_ROWS_MAX;
        let has_own_index = list.sort.by == SortBy::CreatedAt && list.filters.has_indexed_value();
        Self {
            backend,
            is_by_order: is_guessed && !is_sorted && !has_own_index,
            is_sorted,
        }
    }

    /// Converts SQL text to an expression. If `is_hidden`, a plus sign before the text keeps SQLite from using an index
    /// on it.
    fn expression_maybe_hidden_from_index(sql: &str, is_hidden: bool) -> Expr {
        if is_hidden {
            Expr::cust(format!("+{sql}"))
        } else {
            Expr::cust(sql.to_owned())
        }
    }

    /// Returns the expression with which a filter names a column. SQLite may use an index on it if the hint permits.
    fn filter_column(self, column: Column) -> Expr {
        Self::expression_maybe_hidden_from_index(column.as_str(), self.is_by_order)
    }

    /// Returns the expression with which a filter names a sort key, like `filter_column` for a column.
    fn filter_sort_key(self, by: SortBy) -> Expr {
        Self::expression_maybe_hidden_from_index(by.sql(self.backend), self.is_by_order)
    }

    /// Returns the columns by which the list is ordered.
    fn order_columns(self, by: SortBy) -> Vec<Expr> {
        let mut columns = vec![Self::expression_maybe_hidden_from_index(
            by.sql(self.backend),
            self.is_sorted,
        )];
        if by != SortBy::CreatedAt {
            columns.push(Expr::col(Column::CreatedAt));
        }
        columns.push(Expr::col(Column::Id));
        columns
    }
}

impl InvoiceFilter {
    /// True if a filter asks for one exact value of an indexed column. The index yields the rows of this value in the
    /// order of creation.
    fn has_indexed_value(&self) -> bool {
        self.batch_no.is_some() || self.customer_no.is_some() || self.statuses.len() == 1
    }
}

impl InvoiceList {
    /// Selects the ids of one page. The query reads only the taxpayer's part of an index, and only those rows of the
    /// table that its filters need.
    pub(super) fn select_page_ids(
        &self,
        start: PageStart,
        limit: u64,
        hint: IndexHint,
    ) -> SelectStatement {
        let direction = if self.sort.is_descending {
            Order::Desc
        } else {
            Order::Asc
        };
        let mut ids = Query::select();
        ids.column(Column::Id).from(Entity).limit(limit);
        for column in hint.order_columns(self.sort.by) {
            ids.order_by_expr(column, direction.clone());
        }
        match start {
            PageStart::At(offset) => {
                ids.offset(offset);
            }
            // This condition comes before the filters: if a column has several bounds, PostgreSQL starts at the first
            // one in the query.
            PageStart::After(place) => {
                let columns = Expr::tuple(hint.order_columns(self.sort.by));
                let values = Expr::tuple(place.sort_values(hint.backend));
                ids.and_where(if self.sort.is_descending {
                    columns.lt(values)
                } else {
                    columns.gt(values)
                });
            }
        }
        ids.cond_where(self.condition(hint));
        ids
    }

    pub(super) fn condition(&self, hint: IndexHint) -> Condition {
        let filters = &self.filters;
        let date = |date: Date| date.to_string();
        let column = |column| hint.filter_column(column);
        let all = Condition::all()
            .add(Column::TaxpayerId.eq(self.taxpayer.0))
            .add_option(
                filters
                    .batch_no
                    .as_ref()
                    .map(|batch_no| column(Column::BatchNo).eq(batch_no.as_str())),
            )
            .add_option(statuses_condition(filters, hint))
            .add_option(
                filters
                    .payment_status
                    .map(|status| column(Column::PaymentStatus).eq(status.as_str())),
            )
            .add_option(
                filters
                    .ids
                    .as_ref()
                    .map(|ids| Column::Id.is_in(ids.iter().map(|id| id.0))),
            )
            .add_option(
                filters
                    .category
                    .map(|category| column(Column::Category).eq(category.as_str())),
            )
            .add_option(
                filters
                    .date_from
                    .map(|from| column(Column::InvoiceDate).gte(date(from))),
            )
            .add_option(
                filters
                    .date_to
                    .map(|to| column(Column::InvoiceDate).lte(date(to))),
            )
            .add_option(
                filters
                    .customer_no
                    .as_ref()
                    .map(|no| column(Column::CustomerNo).eq(no.as_str())),
            )
            .add_option(
                filters
                    .updated_since
                    .map(|since| column(Column::UpdatedAt).gte(since.as_microsecond())),
            )
            .add_option(
                filters
                    .q
                    .as_ref()
                    .map(|text| search_condition(&Expr::col(Column::SearchText), text)),
            );
        let all = add_authority_status_condition(all, filters, hint);
        let all = all.add_option(without_cancelled_condition(filters, hint));
        let all = all.add_option(filters.refund_due.then(|| refund_due_filter(self.taxpayer)));
        add_amount_conditions(add_due_date_condition(all, filters, hint), filters, hint)
    }
}

/// The statuses of invoices that the authority is still processing or has rejected. The partial index
/// `invoices_unsettled` has this condition, word for word.
pub(in crate::store) const UNSETTLED_CONDITION: &str =
    "authority_status IN ('QUEUED', 'VALIDATED', 'REJECTED', 'FAILED')";

/// The condition that an invoice was not cancelled, for use with the index `invoices_unsettled`. It looks up each
/// invoice by its key. With a plain condition on `status`, SQLite would use an index on that column and read all
/// invoices of the account.
pub(in crate::store) const UNCANCELLED_CONDITION: &str = "NOT EXISTS (SELECT 1 FROM invoices AS own WHERE own.taxpayer_id = invoices.taxpayer_id \
     AND own.id = invoices.id AND own.status = 'cancelled')";

/// True if the partial index `invoices_unsettled` contains all invoices with these statuses.
fn are_in_unsettled_index(statuses: &[AuthorityStatus]) -> bool {
    let is_unsettled = |status: &AuthorityStatus| {
        matches!(
            status,
            AuthorityStatus::Queued
                | AuthorityStatus::Validated
                | AuthorityStatus::Rejected
                | AuthorityStatus::Failed
        )
    };
    !statuses.is_empty() && statuses.iter().all(is_unsettled)
}

/// True if the query uses the partial index `invoices_unsettled` for this filter.
fn uses_unsettled_index(filters: &InvoiceFilter, hint: IndexHint) -> bool {
    are_in_unsettled_index(&filters.authority_statuses) && !hint.is_by_order
}

/// Returns the condition that leaves out cancelled invoices; `None` if the filter includes them.
fn without_cancelled_condition(filters: &InvoiceFilter, hint: IndexHint) -> Option<Expr> {
    filters.without_cancelled.then(|| {
        if uses_unsettled_index(filters, hint) {
            Expr::cust(UNCANCELLED_CONDITION)
        } else {
            let cancelled = WorkflowStatus::Cancelled.as_str();
            hint.filter_column(Column::Status).ne(cancelled)
        }
    })
}

fn add_authority_status_condition(
    all: Condition,
    filters: &InvoiceFilter,
    hint: IndexHint,
) -> Condition {
    let statuses = &filters.authority_statuses;
    if statuses.is_empty() {
        return all;
    }
    let words = statuses.iter().map(|status| status.as_str());
    if uses_status_index(filters, hint) {
        let words: Vec<_> = words.collect();
        return all.add(Expr::cust(own_authority_status_condition(&words)));
    }
    let column = hint.filter_column(Column::AuthorityStatus);
    let all = all.add(column.is_in(words));
    if uses_unsettled_index(filters, hint) {
        all.add(Expr::cust(UNSETTLED_CONDITION))
    } else {
        all
    }
}

/// True if SQLite is to find the invoices of this filter in the index of their workflow status. It would otherwise
/// choose the index of the list, because that has both statuses, and read all invoices of the account in it.
fn uses_status_index(filters: &InvoiceFilter, hint: IndexHint) -> bool {
    dialect(hint.backend).ignores_selectivity()
        && !hint.is_by_order
        && !filters.statuses.is_empty()
        && !are_in_unsettled_index(&filters.authority_statuses)
}

/// Returns the condition that an invoice, which is looked up by its key, has one of these statuses at the authority.
fn own_authority_status_condition(words: &[&str]) -> String {
    let words = words.join("', '");
    format!(
        "EXISTS (SELECT 1 FROM invoices AS own WHERE own.taxpayer_id = invoices.taxpayer_id \
         AND own.id = invoices.id AND own.authority_status IN ('{words}'))"
    )
}

/// Returns the condition on the workflow status; `None` if the filter has none.
fn statuses_condition(filters: &InvoiceFilter, hint: IndexHint) -> Option<Expr> {
    let column = hint.filter_column(Column::Status);
    match filters.statuses.as_slice() {
        [] => None,
        [status] => Some(column.eq(status.as_str())),
        several => Some(column.is_in(several.iter().map(|status| status.as_str()))),
    }
}

fn add_due_date_condition(all: Condition, filters: &InvoiceFilter, hint: IndexHint) -> Condition {
    let due = || hint.filter_sort_key(SortBy::DueDate);
    // Few of the invoices with a past due date are not paid. So the query uses the index of unpaid invoices, by its
    // condition, unless the hint forbids the indexes of filtered columns.
    let is_owed = Expr::cust(if hint.is_by_order {
        "payment_status NOT IN ('PAID', 'REJECTED')"
    } else {
        OWED_CONDITION
    });
    let overdue = filters.overdue_on.map(|today| {
        Condition::all()
            .add(due().lt(date_value(today)))
            .add(is_owed)
            .add(Expr::cust(still_owed_condition("invoices")))
    });
    all.add_option(filters.due_before.map(|day| due().lt(date_value(day))))
        .add_option(filters.due_after.map(|day| {
            Condition::all()
                .add(due().gt(date_value(day)))
                .add(Column::DueDate.is_not_null())
        }))
        .add_option(overdue)
}

fn add_amount_conditions(all: Condition, filters: &InvoiceFilter, hint: IndexHint) -> Condition {
    let payable = || hint.filter_sort_key(SortBy::Payable);
    let value = |amount| payable_value(amount, hint.backend);
    let currency = filters.currency.as_deref();
    all.add_option(currency.map(|code| Column::Currency.eq(code)))
        .add_option(filters.amount_min.map(|min| payable().gte(value(min))))
        .add_option(filters.amount_max.map(|max| payable().lte(value(max))))
}

#[cfg(test)]
mod tests {
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::store::Store;
    use crate::store::invoices::list_sort::SortKey;
    use crate::store::testing::{TestStore, query_plan, stores};

    const INVOICES: i64 = 12_000;

    /// Adds bare rows of two taxpayers, of which every tenth was rejected and every thousandth has no due date.
    async fn add_invoices(store: &Store) {
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             due_date, currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, \
             signed, extras, content_digest, created_at, updated_at) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {INVOICES}) \
             SELECT 7 + i % 2, i, CAST(i AS TEXT), CAST(i AS TEXT), CAST(i AS TEXT), 'B2B', '381', '2026-01-15', \
             CASE WHEN i % 1000 = 0 THEN NULL ELSE '2026-02-15' END, 'NGN', '{{}}', '[]', 'draft', 'PENDING', \
             CAST(i % 977 AS TEXT), '0', CASE WHEN i % 10 = 0 THEN 'REJECTED' ELSE 'PENDING' END, '', 1 = 0, '{{}}', '', \
             i, i FROM n"
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        if store.backend() == DbBackend::Postgres {
            tx.execute_unprepared("ANALYZE invoices").await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Returns the plan of the ids of a page, as one text.
    async fn plan(store: &Store, list: &InvoiceList, start: PageStart) -> String {
        let backend = store.backend();
        let hint = IndexHint::hint_for_list(backend, list, 100_000);
        let statement = backend.build(&list.select_page_ids(start, 50, hint));
        let values = statement.values.map(|values| values.0).unwrap_or_default();
        query_plan(store, &statement.sql, values).await.join("\n")
    }

    fn list(sort: &str, filters: InvoiceFilter) -> InvoiceList {
        InvoiceList {
            taxpayer: TaxpayerId(7),
            filters,
            sort: InvoiceSort::parse(sort).unwrap(),
        }
    }

    #[tokio::test]
    async fn every_order_is_a_walk_through_an_index() {
        let date = SortKey::Date(Date::constant(2026, 2, 15));
        for test in stores().await {
            add_invoices(&test.store).await;
            for (word, index, key) in [
                ("created_at", "invoices_as_listed", SortKey::CreatedAt),
                ("invoice_date", "invoice_date_created_at_id", date),
                ("due_date", "due_date_created_at_id", date),
            ] {
                let place = SortPlace {
                    key,
                    created_at: Timestamp::from_microsecond(500).unwrap(),
                    id: InvoiceId(500),
                };
                for start in [PageStart::At(0), PageStart::After(place)] {
                    for sort in [word.to_owned(), format!("-{word}")] {
                        let list = list(&sort, InvoiceFilter::default());
                        let plan = plan(&test.store, &list, start).await;
                        let is_sorted = plan.contains("Sort") || plan.contains("TEMP B-TREE");
                        assert!(plan.contains(index) && !is_sorted, "{sort}: {plan}");
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn cancelled_invoices_are_left_out_of_the_index_of_their_status() {
        for test in stores().await {
            let store = &test.store;
            add_invoices(store).await;
            let tx = store.begin().await.unwrap();
            let cancel = "UPDATE invoices SET status = 'cancelled' WHERE id % 20 = 0";
            tx.execute_unprepared(cancel).await.unwrap();
            tx.commit().await.unwrap();
            let rejected = vec![AuthorityStatus::Rejected];
            for (authority_statuses, without_cancelled, count) in [
                (rejected.clone(), false, 1_200),
                (rejected.clone(), true, 600),
                (Vec::new(), true, 5_400),
            ] {
                let filters = InvoiceFilter {
                    authority_statuses,
                    without_cancelled,
                    ..InvoiceFilter::default()
                };
                let list = list("-created_at", filters);
                let found = list.count_up_to(store, 10_000).await.unwrap();
                assert_eq!(found, count, "{list:?}");
                let all = IndexHint::hint_for_list(store.backend(), &list, 100_000);
                let ids = list.select_page_ids(PageStart::At(0), 10_000, all);
                let statement = store.backend().build(&ids);
                let rows = store.reader().query_all_raw(statement).await.unwrap();
                assert_eq!(u64::try_from(rows.len()), Ok(count), "{list:?}");
            }
            // PostgreSQL goes by its statistics, which are those of a small table here.
            if store.backend() == DbBackend::Sqlite {
                let filters = InvoiceFilter {
                    authority_statuses: rejected,
                    without_cancelled: true,
                    ..InvoiceFilter::default()
                };
                let list = list("-created_at", filters);
                let few = IndexHint::hint_for_list(store.backend(), &list, 600);
                let ids = list.select_page_ids(PageStart::At(0), 50, few);
                let statement = store.backend().build(&ids);
                let values = statement.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(store, &statement.sql, values).await.join("\n");
                assert!(plan.contains("INDEX invoices_unsettled"), "{plan}");
                assert!(!plan.contains("SCAN"), "{plan}");
            }
        }
    }

    /// Adds a due invoice, and signed credit notes over these amounts that refer to it.
    async fn add_credited_invoice(store: &Store, taxpayer: i64, payable: &str, notes: &[&str]) {
        let row = |id: usize, payable: &str, corrects: &str| {
            format!(
                "({taxpayer}, {id}, '{id}', 'K{id}', '{id}', 'B2B', '381', '2026-01-15', '2026-02-15', 'NGN', '{{}}', \
                 '[]', 'submitted', 'PENDING', '{payable}', '0', 'PENDING', '', 1 = 1, '{{}}', '', {id}, {id}, \
                 {corrects}, {corrects} IS NOT NULL)"
            )
        };
        let mut rows = vec![row(0, payable, "NULL")];
        let notes = (1..).zip(notes.iter().copied());
        rows.extend(notes.map(|(id, note)| row(id, note, "'K0'")));
        let statement = format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             due_date, currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, \
             signed, extras, content_digest, created_at, updated_at, corrects, is_credit_note) VALUES {}",
            rows.join(", ")
        );
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&statement).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn overdue_invoices_are_found_without_a_look_at_the_paid_ones() {
        // SQLite only: PostgreSQL's plan depends on the number of invoices.
        for test in stores().await.into_iter().take(1) {
            let backend = test.store.backend();
            let ids = (1..=25).map(InvoiceId).collect();
            let by_id = "sqlite_autoindex_invoices_1 (taxpayer_id=? AND id=?)";
            for (ids, hint, index) in [
                (
                    None,
                    IndexHint::without_hint(backend),
                    "INDEX invoices_owed",
                ),
                (Some(ids), IndexHint::hint_for_ids(backend), by_id),
            ] {
                let filters = InvoiceFilter {
                    overdue_on: Some(Date::constant(2026, 3, 1)),
                    ids,
                    ..InvoiceFilter::default()
                };
                let mut query = Query::select();
                query.column(Column::Id).from(Entity);
                query.cond_where(list("-created_at", filters).condition(hint));
                let statement = backend.build(&query);
                let values = statement.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(&test.store, &statement.sql, values).await;
                assert!(plan[0].contains(index), "{plan:?}");
            }
        }
    }

    #[tokio::test]
    async fn an_invoice_is_overdue_until_signed_credit_notes_cover_it() {
        let cases: [(&str, &[&str], u64); 8] = [
            ("100.10", &[], 1),
            ("100.10", &["100.09"], 1),
            ("100.10", &["33.37", "66.73"], 0),
            ("0.30", &["0.10", "0.10", "0.10"], 0),
            ("99999999999.99", &["99999999999.98"], 1),
            ("99999999999.99", &["99999999999.99"], 0),
            ("999999999999.99", &["999999999999.99"], 0),
            ("999999999999999.99", &["999999999999999.99"], 0),
        ];
        for test in stores().await {
            for (taxpayer, (payable, notes, count)) in (7..).zip(cases) {
                add_credited_invoice(&test.store, taxpayer, payable, notes).await;
                let filters = InvoiceFilter {
                    overdue_on: Some(Date::constant(2026, 3, 1)),
                    ..InvoiceFilter::default()
                };
                let list = InvoiceList {
                    taxpayer: TaxpayerId(taxpayer),
                    ..list("-created_at", filters)
                };
                let overdue = list.count(&test.store).await.unwrap();
                assert_eq!(overdue, count, "{payable} {notes:?}");
            }
        }
    }

    #[tokio::test]
    async fn several_statuses_are_found_in_the_index_of_the_status() {
        use WorkflowStatus::{Approved, Draft, Paid};
        for test in stores().await {
            let store = &test.store;
            add_invoices(store).await;
            let tx = store.begin().await.unwrap();
            let pay = "UPDATE invoices SET status = 'paid' WHERE id % 100 < 10";
            tx.execute_unprepared(pay).await.unwrap();
            tx.commit().await.unwrap();
            // The statuses, and how many of the invoices have one of them and were not submitted. Every tenth was.
            for (statuses, count) in [
                (vec![Draft], 4_320),
                (vec![Approved, Paid], 480),
                (vec![Draft, Paid], 4_800),
                (vec![Approved], 0),
            ] {
                let filters = InvoiceFilter {
                    statuses,
                    authority_statuses: vec![AuthorityStatus::Pending],
                    ..InvoiceFilter::default()
                };
                let list = list("-created_at", filters);
                let found = list.count_up_to(store, 10_000).await.unwrap();
                assert_eq!(found, count, "{list:?}");
                // PostgreSQL goes by its statistics.
                if store.backend() == DbBackend::Postgres {
                    continue;
                }
                let few = IndexHint::hint_for_list(store.backend(), &list, count);
                let ids = list.select_page_ids(PageStart::At(0), 50, few);
                let statement = store.backend().build(&ids);
                let values = statement.values.map(|values| values.0).unwrap_or_default();
                let plan = query_plan(store, &statement.sql, values).await.join("\n");
                assert!(plan.contains("taxpayer_id_status_created"), "{plan}");
                assert!(!plan.contains("SCAN"), "{plan}");
            }
        }
    }

    #[tokio::test]
    async fn what_has_no_index_of_its_own_is_found_in_that_of_the_list() {
        let is_pending = InvoiceFilter {
            authority_statuses: vec![AuthorityStatus::Pending],
            ..InvoiceFilter::default()
        };
        let is_paid = InvoiceFilter {
            payment_status: Some(PaymentStatus::Paid),
            category: Some(Category::B2B),
            ..InvoiceFilter::default()
        };
        let is_small = InvoiceFilter {
            amount_max: Some(Amount::ONE_HUNDRED),
            ..InvoiceFilter::default()
        };
        // PostgreSQL goes by its statistics, which are those of a small table here.
        let on_sqlite = |test: &TestStore| test.store.backend() == DbBackend::Sqlite;
        for test in stores().await.into_iter().filter(on_sqlite) {
            add_invoices(&test.store).await;
            for (sort, filters) in [
                ("-created_at", is_pending.clone()),
                ("-created_at", is_paid.clone()),
                ("-created_at", is_small.clone()),
                ("-payable", InvoiceFilter::default()),
                ("payable", is_pending.clone()),
            ] {
                let list = list(sort, filters);
                let plan = plan(&test.store, &list, PageStart::At(0)).await;
                assert!(
                    plan.contains("COVERING INDEX invoices_as_listed"),
                    "{sort}: {plan}"
                );
            }
        }
    }
}
