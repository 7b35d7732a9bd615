//! The list of a taxpayer's invoices, by page number or cursor, with filters, in several orders. A query first finds
//! the ids of a page in an index (`list_query`) and then reads only those rows.

use std::collections::HashMap;

use database::StoreError;
use database::column::RowRef;
use database::sql::SqlOnce;
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IdenStatic, Iterable, PaginatorTrait, QueryFilter,
    QuerySelect, Select, Statement,
};

use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::money::Amount;
use crate::store::Store;
use crate::store::invoices::invoice_row::{Column, Entity, Model};
use crate::store::invoices::list_query::IndexHint;
pub use crate::store::invoices::list_query::{InvoiceFilter, InvoiceList, PageStart};
pub use crate::store::invoices::list_sort::{InvoiceSort, SortPlace};

#[derive(Debug, Clone, PartialEq)]
pub struct InvoicePage {
    /// The invoices. Long fields are left out; see `long_invoices`.
    pub invoices: Vec<Invoice>,
    /// The invoices whose fields were left out because they are long, with the size of these fields in bytes.
    pub long_invoices: HashMap<InvoiceId, usize>,
    /// The number of all invoices that match the filter.
    pub total: u64,
    /// The place after which the next page starts; `None` on the last page.
    pub next: Option<SortPlace>,
}

/// The fields that the invoices of a page have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFields {
    /// The fields that lists show: all except `extras`.
    Shown,
    All,
}

/// The amounts of one document in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentAmounts {
    pub currency: String,
    pub payable: Amount,
    pub paid: Amount,
    pub is_credit_note: bool,
}

/// The start of a page, and the maximum number of its invoices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBounds {
    pub start: PageStart,
    pub limit: u64,
}

impl InvoiceList {
    /// Counts the invoices that match the filter.
    pub async fn count(&self, store: &Store) -> Result<u64, StoreError> {
        let condition = self.condition(IndexHint::without_hint(store.backend()));
        let matching = Entity::find().filter(condition);
        Ok(matching.count(store.reader()).await?)
    }

    /// Counts the invoices that match the filter. Stops at `max`.
    pub async fn count_up_to(&self, store: &Store, max: u64) -> Result<u64, StoreError> {
        let mut part = Query::select();
        part.expr(Expr::cust("1"))
            .from(Entity)
            .cond_where(self.condition(IndexHint::without_hint(store.backend())))
            .limit(max);
        let mut count = Query::select();
        count
            .expr_as(Expr::cust("COUNT(*)"), "invoices")
            .from_subquery(part, "part");
        let statement = store.backend().build(&count);
        let row = store.reader().query_one_raw(statement).await?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get("", "invoices"))?;
        Ok(count.unsigned_abs())
    }

    /// Returns the amounts of the taxpayer's sales that match the filter, of `max` documents at most. Cancelled
    /// documents are left out unless the filter asks for them.
    pub async fn amounts(
        &self,
        store: &Store,
        max: u64,
    ) -> Result<Vec<DocumentAmounts>, StoreError> {
        let columns = [
            Column::Currency,
            Column::Payable,
            Column::Paid,
            Column::IsCreditNote,
        ];
        let cancelled = WorkflowStatus::Cancelled;
        let asks_for_cancelled = self.filters.statuses.contains(&cancelled);
        let not_cancelled = (!asks_for_cancelled).then(|| Column::Status.ne(cancelled.as_str()));
        let matching = self.condition(IndexHint::without_hint(store.backend()));
        let rows: Vec<(String, String, String, bool)> = Entity::find()
            .select_only()
            .columns(columns)
            .filter(matching.add_option(not_cancelled))
            .filter(Column::IsSale.eq(true))
            .limit(max)
            .into_tuple()
            .all(store.reader())
            .await?;
        let at = RowRef {
            table: "invoices",
            id: "amounts",
        };
        rows.into_iter()
            .map(|(currency, payable, paid, is_credit_note)| {
                Ok(DocumentAmounts {
                    currency,
                    payable: at.parse(&payable)?,
                    paid: at.parse(&paid)?,
                    is_credit_note,
                })
            })
            .collect()
    }

    /// Counts the invoices and loads one page of them.
    pub async fn page(&self, store: &Store, part: PageBounds) -> Result<InvoicePage, StoreError> {
        let total = self.count(store).await?;
        self.page_with_known_total(store, part, total, PageFields::Shown)
            .await
    }

    /// Loads one page. `total` is the number of all matching invoices, which the caller has counted.
    pub async fn page_with_known_total(
        &self,
        store: &Store,
        part: PageBounds,
        total: u64,
        fields: PageFields,
    ) -> Result<InvoicePage, StoreError> {
        let is_beyond = matches!(part.start, PageStart::At(offset) if offset >= total);
        if is_beyond {
            return Ok(InvoicePage {
                invoices: Vec::new(),
                long_invoices: HashMap::new(),
                total,
                next: None,
            });
        }
        let hint = IndexHint::hint_for_list(store.backend(), self, total);
        let ids = self.select_page_ids(part.start, part.limit.saturating_add(1), hint);
        let mut rows = select_rows(fields)
            .filter(Column::TaxpayerId.eq(self.taxpayer.0))
            .filter(Column::Id.in_subquery(ids))
            .all(store.reader())
            .await?;
        let long_invoices = take_long_field_sizes(&mut rows);
        let mut invoices: Vec<_> = rows
            .into_iter()
            .map(Invoice::try_from)
            .collect::<Result<_, _>>()?;
        invoices.sort_unstable_by_key(|invoice| self.sort.place(invoice));
        if self.sort.is_descending {
            invoices.reverse();
        }
        let limit = usize::try_from(part.limit).unwrap_or(usize::MAX);
        let has_more = invoices.len() > limit;
        invoices.truncate(limit);
        let last = invoices.last().filter(|_| has_more);
        Ok(InvoicePage {
            next: last.map(|invoice| self.sort.place(invoice)),
            invoices,
            long_invoices,
            total,
        })
    }
}

/// If the long fields of an invoice have more bytes than this, a page leaves them out. So a page stays below a few
/// megabytes.
const FIELDS_BYTES_MAX: usize = 16 * 1024;

/// Selects the rows of a list. If the fields of an invoice are too long, the column `lines` has their size instead.
fn select_rows(fields: PageFields) -> Select<Entity> {
    let columns = Column::iter().filter(|column| !matches!(column, Column::Lines | Column::Extras));
    let (size, extras) = match fields {
        PageFields::Shown => ("octet_length(lines)", "'{}'"),
        PageFields::All => ("octet_length(lines) + octet_length(extras)", "extras"),
    };
    let is_short = format!("{size} <= {FIELDS_BYTES_MAX}");
    let lines = format!("CASE WHEN {is_short} THEN lines ELSE CAST({size} AS TEXT) END");
    let extras = format!("CASE WHEN {is_short} THEN {extras} ELSE '{{}}' END");
    Entity::find()
        .select_only()
        .columns(columns)
        .expr_as(Expr::cust(lines), Column::Lines.as_str())
        .expr_as(Expr::cust(extras), Column::Extras.as_str())
}

/// Returns the sizes, in bytes, that `select_rows` has put into the column `lines` of invoices with long fields.
/// Replaces them in the rows by empty lists.
fn take_long_field_sizes(rows: &mut [Model]) -> HashMap<InvoiceId, usize> {
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

/// Counts a taxpayer's invoices in each status. Stops at `max` for each status, so that the time does not grow with the
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
