//! The list of an account's invoices, with the filters of the API call List Invoices.

use std::collections::{BTreeMap, HashMap};

use actix_web::web;
use askama::Template;
use jiff::civil::Date;
use url::form_urlencoded::Serializer;

use crate::console::accounts::base;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Pages, show};
use crate::console::session::accounts::Reader;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{AuthorityStatus, PaymentStatus, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::endpoint::{Path, path};
use crate::http::exports::{self, TableFormat};
use crate::http::forms::invoice_filters::{self, FILTER_NAMES};
use crate::http::forms::query::Query;
use crate::http::limits::AnswerHolder;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::list::{InvoicePage, PagePart, PageStart};

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/invoices").page(list_invoices),
        path("/dashboard/{taxpayer}/invoices/files/{file}").page(get_file),
    ]
}

const PER_PAGE: u64 = 25;
#[derive(Template)]
#[template(path = "accounts/invoices.html")]
struct InvoicesPage {
    frame: Frame,
    base: String,
    filter: FormState,
    statuses: Vec<(&'static str, Badge)>,
    payment_statuses: Vec<(&'static str, Badge)>,
    authority_statuses: Vec<(&'static str, Badge)>,
    orders: &'static [(&'static str, &'static str)],
    is_filtered: bool,
    /// The filters and the order as a query, with its question mark; empty without any.
    query: String,
    rows: Vec<InvoiceRow>,
    sums: Vec<CurrencySum>,
    pages: Pages,
}

struct InvoiceRow {
    invoice: Invoice,
    payable: Amount,
    status: Badge,
    authority: Badge,
    payment: Badge,
    is_overdue: bool,
}

/// The total of the invoices of one currency on this page.
struct CurrencySum {
    currency: String,
    payable: Amount,
    paid: Amount,
}

/// The orders that the page offers, each with its name.
const ORDERS: [(&str, &str); 6] = [
    ("", "Newest first"),
    ("created_at", "Oldest first"),
    ("-invoice_date", "Issued last"),
    ("due_date", "Due first"),
    ("-payable", "Largest amount"),
    ("payable", "Smallest amount"),
];

/// The whole list with its filters as a file, for the links of the page.
async fn get_file(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
    ids: web::Path<(String, String)>,
) -> Answer {
    let format = TableFormat::from_extension(&ids.1).ok_or_else(ApiError::route_not_found)?;
    let asked = invoice_filters::read(&query, state.today())?;
    let holder = AnswerHolder::for_taxpayer(session.taxpayer, None);
    let list = asked.into_list(session.taxpayer);
    exports::invoices_file(&state, holder, list, format).await
}

async fn list_invoices(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let start = PageStart::At((page.number - 1).saturating_mul(page.per_page));
    let values = FormValues::from(&query);
    let today = state.today();
    let (found, filter) = match invoice_filters::read(&query, today) {
        Ok(asked) => {
            let part = PagePart {
                start,
                limit: page.per_page,
            };
            let list = asked.into_list(session.taxpayer);
            let found = list.page(&state.store, part).await?;
            (found, FormState::new(values.clone()))
        }
        Err(faults) => {
            let none = InvoicePage {
                invoices: Vec::new(),
                long_invoices: HashMap::new(),
                total: 0,
                next: None,
            };
            (none, FormState::with_faults(values.clone(), faults))
        }
    };
    let base = base(&session);
    let query = list_query(&values);
    let catalog = state.catalog.get();
    let sums = sums(&found.invoices, &catalog);
    let rows = found.invoices.into_iter().map(|invoice| {
        let digits = catalog.currency_digits(&invoice.currency);
        InvoiceRow::new(invoice, digits, today)
    });
    show(&InvoicesPage {
        frame: Frame::for_account(&session, "Invoices"),
        is_filtered: FILTER_NAMES
            .iter()
            .any(|name| !values.text(name).is_empty()),
        statuses: WorkflowStatus::ALL
            .iter()
            .map(|status| (status.as_str(), (*status).into()))
            .collect(),
        payment_statuses: PaymentStatus::ALL
            .iter()
            .map(|one| (one.as_str(), (*one).into()))
            .collect(),
        authority_statuses: AuthorityStatus::ALL
            .iter()
            .map(|one| (one.as_str(), (*one).into()))
            .collect(),
        orders: &ORDERS,
        sums,
        pages: Pages::new(
            page.number,
            found.total,
            page.per_page,
            format!("{base}/invoices{query}"),
        ),
        query,
        rows: rows.collect(),
        filter,
        base,
    })
}

/// Returns the filters and the order as a query, without the number of the page.
fn list_query(values: &FormValues) -> String {
    let mut pairs = Serializer::new(String::new());
    for name in FILTER_NAMES.into_iter().chain(["sort", "per_page"]) {
        if !values.text(name).is_empty() {
            pairs.append_pair(name, values.text(name));
        }
    }
    let pairs = pairs.finish();
    if pairs.is_empty() {
        pairs
    } else {
        format!("?{pairs}")
    }
}

fn sums(invoices: &[Invoice], catalog: &Catalog) -> Vec<CurrencySum> {
    let mut sums: BTreeMap<&str, Option<(Amount, Amount)>> = BTreeMap::new();
    for invoice in invoices {
        let sum = sums
            .entry(&invoice.currency)
            .or_insert(Some((Amount::ZERO, Amount::ZERO)));
        *sum = sum.and_then(|(payable, paid)| {
            Some((
                payable.plus(invoice.payment.payable)?,
                paid.plus(invoice.payment.paid)?,
            ))
        });
    }
    let sum = |(currency, sum): (&str, Option<(Amount, Amount)>)| {
        let (payable, paid) = sum?;
        let shown = |amount: Amount| amount.with_digits(catalog.currency_digits(currency));
        Some(CurrencySum {
            currency: currency.to_owned(),
            payable: shown(payable),
            paid: shown(paid),
        })
    };
    sums.into_iter().filter_map(sum).collect()
}

impl InvoiceRow {
    fn new(invoice: Invoice, digits: u32, today: Date) -> Self {
        Self {
            payable: invoice.payment.payable.with_digits(digits),
            status: invoice.status.into(),
            authority: invoice.authority.status.into(),
            payment: invoice.payment.status.into(),
            is_overdue: invoice.is_overdue(today),
            invoice,
        }
    }
}
