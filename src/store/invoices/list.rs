//! The list of a taxpayer's invoices: newest first, by page number or cursor, with filters. A query first finds the ids
//! of a page in an index (the filtered column, `created_at` and `id`) and then reads only those rows.

use std::collections::HashMap;

use database::StoreError;
use database::column::{RowRef, caseless, contains_pattern};
use database::sql::{SqlOnce, dialect};
use jiff::Timestamp;
use jiff::civil::Date;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbBackend, EntityTrait, IdenStatic, Iterable,
    PaginatorTrait, QueryFilter, QuerySelect, Select, Statement,
};

use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{Category, PaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity, Model};

/// The filter of the list. A field that is `None` does not filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvoiceFilter {
    pub batch_no: Option<String>,
    pub status: Option<WorkflowStatus>,
    pub payment_status: Option<PaymentStatus>,
    pub category: Option<Category>,
    /// The first invoice date to include; `date_to` is the last.
    pub date_from: Option<Date>,
    pub date_to: Option<Date>,
    pub customer_no: Option<String>,
    /// Only invoices with this text in the invoice number, the IRN, or the customer's number, name or tax number,
    /// ignoring case.
    pub q: Option<String>,
    pub updated_since: Option<Timestamp>,
}

/// The place of the last invoice on a page. The next page starts after it, even if new invoices have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    pub created_at: Timestamp,
    pub id: InvoiceId,
}

/// The start of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart {
    /// The page starts after this many invoices.
    At(u64),
    After(ListCursor),
}

#[derive(Debug, Clone, PartialEq)]
pub struct InvoicePage {
    /// The invoices, without the fields that no list shows (`extras`) and without long lines.
    pub invoices: Vec<Invoice>,
    /// The invoices whose lines were left out because they are long, with the size of these lines in bytes.
    pub long_invoices: HashMap<InvoiceId, usize>,
    /// The number of all invoices that match the filter.
    pub total: u64,
    /// The cursor for the next page; `None` on the last page.
    pub next: Option<ListCursor>,
}

/// Loads one page of a taxpayer's invoices, newest first.
pub async fn owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    filters: &InvoiceFilter,
    start: PageStart,
    limit: u64,
) -> Result<InvoicePage, StoreError> {
    let plain = IndexHint {
        is_by_order: false,
        is_sorted: false,
    };
    let total = Entity::find()
        .filter(condition(taxpayer, filters, plain))
        .count(store.reader())
        .await?;
    let skipped = if let PageStart::At(offset) = start {
        offset
    } else {
        0
    };
    if skipped >= total {
        return Ok(InvoicePage {
            invoices: Vec::new(),
            long_invoices: HashMap::new(),
            total,
            next: None,
        });
    }
    let reading = IndexHint::for_filter(store.backend(), filters, total);
    let ids = select_page_ids(
        condition(taxpayer, filters, reading),
        start,
        limit.saturating_add(1),
        reading,
    );
    let mut rows = select_rows()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::Id.in_subquery(ids))
        .all(store.reader())
        .await?;
    rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let long_invoices = leave_out_long_lines(&mut rows);
    let invoices: Vec<_> = rows
        .into_iter()
        .map(Invoice::try_from)
        .collect::<Result<_, _>>()?;
    let last = invoices.last().filter(|_| has_more);
    let next = last.map(|invoice| ListCursor {
        created_at: invoice.created_at,
        id: invoice.id,
    });
    Ok(InvoicePage {
        invoices,
        long_invoices,
        total,
        next,
    })
}

/// The list contains the lines of an invoice only if they take at most this many bytes, so that a page is never larger
/// than a few megabytes.
const LINES_BYTES_MAX: usize = 16 * 1024;

/// Selects the rows of a list. If the lines of an invoice are long, the column `lines` has their size instead.
fn select_rows() -> Select<Entity> {
    let columns = Column::iter().filter(|column| !matches!(column, Column::Lines | Column::Extras));
    let lines = format!(
        "CASE WHEN octet_length(lines) <= {LINES_BYTES_MAX} THEN lines ELSE CAST(octet_length(lines) AS TEXT) END"
    );
    Entity::find()
        .select_only()
        .columns(columns)
        .expr_as(Expr::cust(lines), Column::Lines.as_str())
        .expr_as(Expr::cust("'{}'"), Column::Extras.as_str())
}

/// Replaces the sizes in the column `lines` by empty lists, and returns the sizes.
fn leave_out_long_lines(rows: &mut [Model]) -> HashMap<InvoiceId, usize> {
    let mut long_invoices = HashMap::new();
    for row in rows {
        if let Ok(size) = row.lines.parse() {
            long_invoices.insert(InvoiceId(row.id), size);
            "[]".clone_into(&mut row.lines);
        }
    }
    long_invoices
}

static COUNT_BY_STATUS: SqlOnce = SqlOnce::new(|_| {
    let of = |status: &WorkflowStatus| {
        format!(
            "SELECT '{status}' AS status, (SELECT COUNT(*) FROM (SELECT 1 FROM invoices \
             WHERE taxpayer_id = $1 AND status = '{status}' LIMIT $2) AS part) AS invoices"
        )
    };
    WorkflowStatus::ALL
        .iter()
        .map(of)
        .collect::<Vec<_>>()
        .join(" UNION ALL ")
});

/// Counts a taxpayer's invoices in each status, but only up to `max` in each, so that the cost does not grow with the
/// number of invoices.
pub async fn count_by_status(
    store: &Store,
    taxpayer: TaxpayerId,
    max: u64,
) -> Result<Vec<(WorkflowStatus, u64)>, StoreError> {
    let backend = store.backend();
    let values = [
        taxpayer.0.into(),
        i64::try_from(max).unwrap_or(i64::MAX).into(),
    ];
    let statement = Statement::from_sql_and_values(backend, COUNT_BY_STATUS.get(backend), values);
    let rows = store.reader().query_all_raw(statement).await?;
    let at = RowRef {
        table: "invoices",
        id: "status",
    };
    rows.iter()
        .map(|row| {
            let (status, count): (String, i64) =
                (row.try_get("", "status")?, row.try_get("", "invoices")?);
            Ok((at.parse(&status)?, count.unsigned_abs()))
        })
        .collect()
}

/// Counts the invoices of each of these taxpayers that were created at `since` or later. Taxpayers without such an
/// invoice are left out.
pub async fn count_since(
    store: &Store,
    taxpayers: &[TaxpayerId],
    since: Timestamp,
) -> Result<HashMap<TaxpayerId, i64>, StoreError> {
    let rows: Vec<(i64, i64)> = Entity::find()
        .select_only()
        .column(Column::TaxpayerId)
        .column_as(Column::Id.count(), "invoices")
        .filter(Column::TaxpayerId.is_in(taxpayers.iter().map(|id| id.0)))
        .filter(Column::CreatedAt.gte(since.as_microsecond()))
        .group_by(Column::TaxpayerId)
        .into_tuple()
        .all(store.reader())
        .await?;
    Ok(rows
        .into_iter()
        .map(|(id, count)| (TaxpayerId(id), count))
        .collect())
}

/// Tells SQLite which index to use, because SQLite guesses the number of matching rows badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexHint {
    /// True if many rows match and all filters are ranges. The newest rows are then read until the page is full.
    is_by_order: bool,
    /// True if few rows match. All of them are then found and sorted, because they may be far apart in the list.
    is_sorted: bool,
}

/// If at most this many rows match, the query finds and sorts all of them.
const SORTED_ROWS_MAX: u64 = 10_000;

impl IndexHint {
    fn for_filter(backend: DbBackend, filters: &InvoiceFilter, total: u64) -> Self {
        let is_guessed =
            dialect(backend).ignores_selectivity() && *filters != InvoiceFilter::default();
        let is_sorted = is_guessed && total <= SORTED_ROWS_MAX;
        Self {
            is_by_order: is_guessed && !is_sorted && !filters.has_exact_value(),
            is_sorted,
        }
    }

    /// Returns a column as an expression. With `is_hidden`, a plus sign keeps SQLite from using an index on it.
    fn filter_column(column: Column, is_hidden: bool) -> Expr {
        if is_hidden {
            Expr::cust(format!("+{}", column.as_str()))
        } else {
            Expr::col(column)
        }
    }
}

impl InvoiceFilter {
    /// True if a filter asks for one exact value. The index of that column then yields the rows in the order of the
    /// list.
    fn has_exact_value(&self) -> bool {
        let texts = self.batch_no.is_some() || self.customer_no.is_some();
        texts || self.status.is_some() || self.payment_status.is_some() || self.category.is_some()
    }
}

/// Selects the ids of one page. The query reads only an index, not the table.
fn select_page_ids(
    condition: Condition,
    start: PageStart,
    limit: u64,
    reading: IndexHint,
) -> SelectStatement {
    let created_at = || IndexHint::filter_column(Column::CreatedAt, reading.is_sorted);
    let mut ids = Query::select();
    ids.column(Column::Id)
        .from(Entity)
        .cond_where(condition)
        .order_by_expr(created_at(), sea_orm::Order::Desc)
        .order_by(Column::Id, sea_orm::Order::Desc)
        .limit(limit);
    match start {
        PageStart::At(offset) => ids.offset(offset),
        PageStart::After(place) => {
            let columns = Expr::tuple([created_at(), Expr::col(Column::Id)]);
            let values = [place.created_at.as_microsecond(), place.id.0].map(Expr::val);
            ids.and_where(columns.lt(Expr::tuple(values)))
        }
    };
    ids
}

fn condition(taxpayer: TaxpayerId, filters: &InvoiceFilter, reading: IndexHint) -> Condition {
    let date = |date: Date| date.to_string();
    let range = |column| IndexHint::filter_column(column, reading.is_by_order);
    Condition::all()
        .add(Column::TaxpayerId.eq(taxpayer.0))
        .add_option(
            filters
                .batch_no
                .as_ref()
                .map(|batch_no| Column::BatchNo.eq(batch_no)),
        )
        .add_option(
            filters
                .status
                .map(|status| Column::Status.eq(status.as_str())),
        )
        .add_option(
            filters
                .payment_status
                .map(|status| Column::PaymentStatus.eq(status.as_str())),
        )
        .add_option(
            filters
                .category
                .map(|category| Column::Category.eq(category.as_str())),
        )
        .add_option(
            filters
                .date_from
                .map(|from| range(Column::InvoiceDate).gte(date(from))),
        )
        .add_option(
            filters
                .date_to
                .map(|to| range(Column::InvoiceDate).lte(date(to))),
        )
        .add_option(
            filters
                .customer_no
                .as_ref()
                .map(|no| Column::CustomerNo.eq(no)),
        )
        .add_option(
            filters
                .updated_since
                .map(|since| range(Column::UpdatedAt).gte(since.as_microsecond())),
        )
        .add_option(
            filters
                .q
                .as_ref()
                .map(|text| Expr::col(Column::SearchText).like(contains_pattern(&caseless(text)))),
        )
}
