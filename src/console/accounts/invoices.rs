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
use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::endpoint::{Path, path};
use crate::http::forms::invoice_filters;
use crate::http::forms::query::Query;
use crate::http::state::ApiState;
use crate::store::invoices::list::{self, InvoicePage, PageStart};

pub(crate) fn endpoints() -> Vec<Path> {
    vec![path("/dashboard/{taxpayer}/invoices").page(list_invoices)]
}

const PER_PAGE: u64 = 25;
/// The filters that the page shows, and those that links from other pages set.
const FILTERS: [&str; 8] = [
    "q",
    "status",
    "payment_status",
    "date_from",
    "date_to",
    "invoice_category",
    "customer_no",
    "batch_no",
];

#[derive(Template)]
#[template(path = "accounts/invoices.html")]
struct InvoicesPage {
    frame: Frame,
    base: String,
    filter: FormState,
    statuses: Vec<(&'static str, Badge)>,
    payment_statuses: Vec<(&'static str, Badge)>,
    is_filtered: bool,
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

async fn list_invoices(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let start = PageStart::At((page.number - 1).saturating_mul(page.per_page));
    let values = FormValues::from(&query);
    let (found, filter) = match invoice_filters::read(&query) {
        Ok(asked) => {
            let found = list::owned_by(
                &state.store,
                session.taxpayer,
                &asked.filters,
                start,
                page.per_page,
            )
            .await?;
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
    let here = list_address(&base, &values);
    let catalog = state.catalog.get();
    let sums = sums(&found.invoices, &catalog);
    let rows = found.invoices.into_iter().map(|invoice| {
        let digits = catalog.currency_digits(&invoice.currency);
        InvoiceRow::new(invoice, digits, state.today())
    });
    show(&InvoicesPage {
        frame: Frame::for_account(&session, "Invoices"),
        is_filtered: FILTERS.iter().any(|name| !values.text(name).is_empty()),
        statuses: WorkflowStatus::ALL
            .iter()
            .map(|status| (status.as_str(), (*status).into()))
            .collect(),
        payment_statuses: PaymentStatus::ALL
            .iter()
            .map(|one| (one.as_str(), (*one).into()))
            .collect(),
        sums,
        pages: Pages::new(page.number, found.total, page.per_page, here),
        rows: rows.collect(),
        filter,
        base,
    })
}

/// Returns the address of the list with its filters, without the number of the page.
fn list_address(base: &str, values: &FormValues) -> String {
    let mut pairs = Serializer::new(String::new());
    for name in FILTERS.into_iter().chain(["per_page"]) {
        if !values.text(name).is_empty() {
            pairs.append_pair(name, values.text(name));
        }
    }
    format!("{base}/invoices?{}", pairs.finish())
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
        let is_unpaid = matches!(
            invoice.payment.status,
            PaymentStatus::Pending | PaymentStatus::Partial
        );
        let is_open = is_unpaid && invoice.status != WorkflowStatus::Cancelled;
        Self {
            payable: invoice.payment.payable.with_digits(digits),
            status: invoice.status.into(),
            authority: invoice.authority.status.into(),
            payment: invoice.payment.status.into(),
            is_overdue: is_open && invoice.due_date.is_some_and(|due| due < today),
            invoice,
        }
    }
}
