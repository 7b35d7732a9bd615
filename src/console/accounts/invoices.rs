//! The list of an account's invoices, with the filters of the API call List Invoices. Its tabs are filters, too. Counts
//! have an upper limit, so that the page is fast even for a large account.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use database::page::Page;

use crate::console::accounts::bulk_selection::{BulkBar, InvoiceSelection};
use crate::console::accounts::invoice_rows::{InvoiceRow, load_rows};
use crate::console::accounts::invoice_sums::{CurrencySum, currency_sums};
use crate::console::accounts::list_filters::{self, FOLDED_FILTERS, list_query};
use crate::console::accounts::navigation::base_path;
use crate::console::accounts::saved_views::{self, SavedView};
use crate::console::accounts::source_list::SourceList;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::kept_filters::{KeptFilters, ListFormFields};
use crate::console::list_pages::{PagePosition, show_list_with_status};
use crate::console::page::Answer;
use crate::console::session::accounts::{self, AccountSession, Reader};
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{AuthorityStatus, PaymentStatus, WorkflowStatus};
use crate::domain::money::group_digits;
use crate::http::exports::{self, TableFormat};
use crate::http::forms::invoice_filters::FILTER_NAMES;
use crate::http::forms::query::Query;
use crate::http::limits::AnswerHolder;
use crate::http::paths::{Path, path};
use crate::http::pdf_archive::pdf_archive;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{InvoiceList, PageBounds, PageFields, PageStart};
use crate::store::invoices::work_tabs::{self, TabCount, WorkTab};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices").page(list_invoices),
        path("/dashboard/{taxpayer}/invoices/files/{file}").page(download_invoices),
    ]
}

const PER_PAGE: u64 = 25;
/// The file with the PDFs of the list, beside those of `TableFormat`.
const PDFS_FILE: &str = "zip";
/// The invoices of the list are counted up to this number. A larger number is shown as `10,000+`.
pub(super) const COUNTED_MAX: u64 = 10_000;
/// The invoices of a tab are counted up to this number.
pub(super) const TAB_COUNTED_MAX: u64 = 1_000;
/// The totals are shown if no more than this number of invoices match. They then include all of these.
const SUMMED_MAX: u64 = 2_000;

#[derive(Template)]
#[template(path = "accounts/invoices.html")]
struct InvoicesPage {
    frame: Frame,
    base: String,
    tabs: Vec<Tab>,
    views: Vec<SavedView>,
    /// The filters and the order as a saved view stores them; empty if there are none.
    view_query: String,
    /// The form that saves the filters as a view.
    view: FormState,
    filter: FormState,
    kept: KeptFilters,
    /// The filters that the page keeps folded, each as the type of its input, its name and its label.
    folded: [(&'static str, &'static str, &'static str); 7],
    /// True if one of the folded filters is set.
    is_unfolded: bool,
    statuses: Vec<(&'static str, Badge)>,
    payment_statuses: Vec<(&'static str, Badge)>,
    authority_statuses: Vec<(&'static str, Badge)>,
    is_filtered: bool,
    /// The filters and the order as a query with its question mark; empty if there are none.
    query: String,
    columns: Vec<SortColumn>,
    /// The query with which the address of each row's page ends (`source_list`).
    row_suffix: String,
    rows: Vec<InvoiceRow>,
    /// True if credit notes are among the documents that match, as far as it is known.
    has_credit_notes: bool,
    /// The totals by currency; `None` if too many invoices match.
    sums: Option<Vec<CurrencySum>>,
    bulk: BulkBar,
    /// The number of invoices that match, such as `10,000+`.
    count_words: String,
    pages: PagePosition,
}

/// A tab, which is a set of filters. `count` is empty if its invoices are not counted.
struct Tab {
    label: &'static str,
    address: String,
    count: String,
    is_current: bool,
}

/// A column by which the list can be ordered.
struct SortColumn {
    label: &'static str,
    class: &'static str,
    address: String,
    /// The value of `aria-sort`; empty if the list is not ordered by this column.
    order: &'static str,
}

/// The tabs of all invoices and of the paid ones. They show no count, because most invoices are in them.
const ALL_TAB: (&str, &str) = ("All", "");
const PAID_TAB: (&str, &str) = ("Paid", "payment_status=PAID");

/// Returns the label of a tab, and its filters as a query.
pub(super) fn tab_label_and_filters(tab: WorkTab) -> (&'static str, &'static str) {
    match tab {
        WorkTab::Attention => (
            "Needs attention",
            "authority_status=REJECTED,FAILED&without_cancelled=true",
        ),
        WorkTab::Draft => ("Draft", "status=draft&authority_status=PENDING"),
        WorkTab::ToSubmit => ("To submit", "status=approved,paid&authority_status=PENDING"),
        WorkTab::Waiting => (
            "Waiting",
            "authority_status=QUEUED,VALIDATED&without_cancelled=true",
        ),
        WorkTab::Rejected => (
            "Rejected",
            "authority_status=REJECTED&without_cancelled=true",
        ),
        WorkTab::Overdue => ("Overdue", "overdue=true"),
        WorkTab::RefundDue => ("Refund due", "refund_due=true"),
        WorkTab::Signed => ("Signed", "status=submitted"),
    }
}

/// Writes a count. Adds a plus sign if there are more than were counted.
pub(super) fn count_text(count: u64, is_more: bool) -> String {
    let more = if is_more { "+" } else { "" };
    format!("{}{more}", group_digits(&count.to_string()))
}

/// The columns by which the list can be ordered, each as its label, the word of the parameter `sort`, and its class.
const SORT_COLUMNS: [(&str, &str, &str); 3] = [
    ("Issued", "invoice_date", ""),
    ("Due", "due_date", ""),
    ("Payable", "payable", "num"),
];

/// Sends the invoices as a table, or their PDFs: all that match the filters, or the ticked ones.
async fn download_invoices(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Reader(session): Reader,
    query: Query,
    ids: web::Path<(String, String)>,
) -> Answer {
    let format = TableFormat::from_extension(&ids.1);
    if format.is_none() && ids.1 != PDFS_FILE {
        return Err(ApiError::route_not_found());
    }
    let values = FormValues::from(&query);
    // The form with the ticked rows always sends the field `filter`, even an empty one. A link to the file has none.
    let list = if query.text("filter").is_some() {
        InvoiceSelection::from_form(&values)?.into_invoice_list(&state, session.taxpayer)?
    } else {
        let list_request =
            list_filters::read_list_query(&query, state.today(), &state.catalog.get())?;
        list_request.into_list(session.taxpayer)
    };
    let holder = AnswerHolder::for_taxpayer(session.taxpayer, None);
    let right = accounts::reading_right(&request, &state, session.taxpayer);
    if let Some(format) = format {
        return exports::invoices_file(&state, holder, right, list, format).await;
    }
    let origin = state.origin(&request);
    Box::pin(pdf_archive(&state, holder, right, list, origin)).await
}

/// The invoices on the current page of the list, with the counts and totals.
struct FoundInvoices {
    invoices: Vec<Invoice>,
    total: u64,
    is_more: bool,
    sums: Option<Vec<CurrencySum>>,
    /// True if credit notes are among the documents that were summed up.
    has_credit_notes: bool,
}

impl FoundInvoices {
    async fn load(state: &ApiState, list: &InvoiceList, page: Page) -> Result<Self, ApiError> {
        let store = &state.store;
        let count = list.count_up_to(store, COUNTED_MAX + 1).await?;
        let part = PageBounds {
            start: PageStart::At(page.offset()),
            limit: page.per_page,
        };
        let found = list
            .page_with_known_total(store, part, count, PageFields::Shown)
            .await?;
        let amounts = if count <= SUMMED_MAX {
            Some(list.amounts(store, SUMMED_MAX).await?)
        } else {
            None
        };
        let sums = amounts
            .as_ref()
            .map(|amounts| currency_sums(amounts, &state.catalog.get()));
        let mut summed_up = amounts.iter().flatten();
        Ok(Self {
            invoices: found.invoices,
            total: count.min(COUNTED_MAX),
            is_more: count > COUNTED_MAX,
            sums,
            has_credit_notes: summed_up.any(|document| document.is_credit_note),
        })
    }

    fn empty() -> Self {
        Self {
            invoices: Vec::new(),
            total: 0,
            is_more: false,
            sums: Some(Vec::new()),
            has_credit_notes: false,
        }
    }
}

async fn list_invoices(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
) -> Answer {
    render(&state, &session, &query, FormState::default()).await
}

/// Shows the list that a query asks for, with the form that saves its filters as a view.
pub(super) async fn render(
    state: &ApiState,
    session: &AccountSession,
    query: &Query,
    view: FormState,
) -> Answer {
    let page = query.page(PER_PAGE);
    let values = FormValues::from(query);
    let today = state.today();
    let catalog = state.catalog.get();
    let (found, filter) = match list_filters::read_list_query(query, today, &catalog) {
        Ok(list_request) => {
            let list = list_request.into_list(session.taxpayer);
            let found = FoundInvoices::load(state, &list, page).await?;
            (found, FormState::new(values.clone()))
        }
        Err(faults) => (
            FoundInvoices::empty(),
            FormState::with_faults(values.clone(), faults),
        ),
    };
    let counts = work_tabs::count(&state.store, session.taxpayer, today, TAB_COUNTED_MAX).await?;
    let base = base_path(session);
    let list_query = list_query(&values, &[]);
    let list_path = format!("{base}/invoices");
    let rows = load_rows(state, session.taxpayer, found.invoices).await?;
    let is_set = |name: &str| !values.text(name).is_empty();
    let words = |status: &WorkflowStatus| (status.as_str(), Badge::from(*status));
    let page = InvoicesPage {
        frame: Frame::for_account(session, "Invoices"),
        tabs: tabs(&base, &values, &counts),
        views: saved_views::load(state, session, &values).await?,
        view_query: saved_views::view_filters(&values),
        is_filtered: FILTER_NAMES.iter().any(|name| is_set(name)),
        folded: FOLDED_FILTERS,
        is_unfolded: FOLDED_FILTERS.iter().any(|(_, name, _)| is_set(name)) || filter.is_refused(),
        statuses: WorkflowStatus::ALL.iter().map(words).collect(),
        payment_statuses: PaymentStatus::ALL
            .iter()
            .map(|one| (one.as_str(), (*one).into()))
            .collect(),
        authority_statuses: AuthorityStatus::ALL
            .iter()
            .map(|one| (one.as_str(), (*one).into()))
            .collect(),
        columns: sort_columns(&base, &values),
        sums: found.sums,
        bulk: BulkBar::new(&list_query),
        count_words: count_text(found.total, found.is_more),
        pages: PagePosition::new(page, found.total, &list_path, query),
        kept: KeptFilters::new(&list_path, query, &FORM),
        query: list_query,
        row_suffix: SourceList::from_query(query, today, &catalog).suffix(),
        has_credit_notes: found.has_credit_notes || rows.iter().any(|row| row.is_credit_note),
        rows,
        filter,
        view,
        base,
    };
    let status = if page.view.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_list_with_status(status, &page.pages, &page)
}

/// The fields of the list's form, and the labels of filters that have no field.
const FORM: ListFormFields = ListFormFields {
    fields: &[
        "q",
        "status",
        "payment_status",
        "authority_status",
        "date_from",
        "date_to",
        "due_after",
        "due_before",
        "currency",
        "amount_min",
        "amount_max",
    ],
    chips: &[
        ("customer_no", "Customer"),
        ("batch_no", "Batch"),
        ("invoice_category", "Category"),
        ("overdue", "Overdue"),
        ("refund_due", "Refund due"),
        ("without_cancelled", "Without cancelled ones"),
        ("updated_since", "Changed since"),
    ],
};

fn tabs(base: &str, values: &FormValues, counts: &[TabCount]) -> Vec<Tab> {
    let filters = list_query(values, &["sort", "per_page"]);
    let tab = |(label, query): (&'static str, &str), count: String| {
        let separator = if query.is_empty() { "" } else { "?" };
        Tab {
            label,
            address: format!("{base}/invoices{separator}{query}"),
            count,
            is_current: filters.trim_start_matches('?') == query.replace(',', "%2C"),
        }
    };
    let all = [tab(ALL_TAB, String::new())];
    let counted_tabs = counts.iter().map(|one| {
        tab(
            tab_label_and_filters(one.tab),
            count_text(one.count, one.is_more),
        )
    });
    all.into_iter()
        .chain(counted_tabs)
        .chain([tab(PAID_TAB, String::new())])
        .collect()
}

/// Returns the columns. The link of a column orders the list by this column or, if the list is ordered so already,
/// reverses the order.
fn sort_columns(base: &str, values: &FormValues) -> Vec<SortColumn> {
    let filters = list_query(values, &["sort"]);
    let separator = if filters.is_empty() { "?" } else { "&" };
    let current_sort = values.text("sort");
    let column = |(label, word, class): (&'static str, &'static str, &'static str)| {
        let (next, order) = match current_sort.strip_prefix('-').unwrap_or(current_sort) {
            by if by != word => (format!("-{word}"), ""),
            _ if current_sort.starts_with('-') => (word.to_owned(), "descending"),
            _ => (format!("-{word}"), "ascending"),
        };
        SortColumn {
            label,
            class,
            address: format!("{base}/invoices{filters}{separator}sort={next}"),
            order,
        }
    };
    SORT_COLUMNS.map(column).into()
}
