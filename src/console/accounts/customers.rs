//! The customers of an account: the list of those who owe something, the list of all, and the page of one customer with
//! its balances and open invoices.

use std::collections::BTreeMap;

use actix_web::web;
use askama::Template;
use jiff::civil::Date;
use url::form_urlencoded::Serializer;

use crate::console::accounts::navigation::base_path;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::page::{Answer, show};
use crate::console::session::accounts::{AccountSession, Reader};
use crate::domain::invoice::owed::{self, AGES, CustomerBalance, OwedInvoice, OwedTotal};
use crate::domain::kernel::ids::{CustomerId, InvoiceId, parse_id};
use crate::domain::money::Amount;
use crate::domain::party::Customer;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices::customers;
use crate::store::invoices::owed::{OwedInvoices, load_owed_invoices};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/customers").page(list_customers),
        path("/dashboard/{taxpayer}/customers/{customer}").page(show_customer),
    ]
}

const PER_PAGE: u64 = 25;
/// The maximum number of unpaid invoices that are summed up. Those that were due first are taken.
const OWED_MAX: u64 = 4_000;
/// The maximum number of open invoices that the page of a customer shows.
const INVOICES_SHOWN_MAX: usize = 50;

#[derive(Template)]
#[template(path = "accounts/customers.html")]
struct CustomersPage {
    frame: Frame,
    base: String,
    /// True if all customers are listed, not only those who owe something.
    lists_all: bool,
    search: String,
    totals: Vec<OwedTotal>,
    rows: Vec<CustomerLine>,
    pages: PagePosition,
    is_cut: bool,
}

/// A customer with its balances, one for each currency, in the order of the currencies.
struct CustomerLine {
    id: CustomerId,
    name: String,
    /// The customer's number and TIN; empty in the list of those who owe something.
    number_and_tin: [String; 2],
    balances: Vec<CustomerBalance>,
    /// The number of days since the oldest overdue invoice was due, in whichever currency; `None` if none is overdue.
    days_late: Option<i32>,
}

impl CustomerLine {
    fn new(id: CustomerId, name: String, number_and_tin: [String; 2]) -> Self {
        Self {
            id,
            name,
            number_and_tin,
            balances: Vec::new(),
            days_late: None,
        }
    }

    /// Adds a balance in another currency. In each row the currencies have the same order.
    fn add(&mut self, balance: CustomerBalance) {
        self.days_late = self.days_late.max(balance.days_late);
        let position = self
            .balances
            .partition_point(|one| one.currency < balance.currency);
        self.balances.insert(position, balance);
    }
}

#[derive(Template)]
#[template(path = "accounts/customer.html")]
struct CustomerPage {
    frame: Frame,
    base: String,
    /// The address of the list of the customer's invoices.
    all_invoices: String,
    /// The query of the form for a new invoice to the customer.
    new_query: String,
    customer: Customer,
    address: String,
    balances: Vec<CustomerBalance>,
    invoices: Vec<OpenInvoiceLine>,
    unlisted: usize,
    is_cut: bool,
}

/// A row in the list of a customer's open invoices.
struct OpenInvoiceLine {
    id: InvoiceId,
    invoice_no: String,
    is_credit_note: bool,
    due_date: Option<Date>,
    days_late: Option<i32>,
    currency: String,
    owed: Amount,
}

/// GET /dashboard/{taxpayer}/customers: lists the customers who owe something, the longest overdue first. With
/// `all=true`, lists all customers by name.
async fn list_customers(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    query: Query,
) -> Answer {
    let page = query.page(PER_PAGE);
    let search = query.trimmed_text("q");
    let lists_all = search.is_some() || query.flag("all")?;
    let OwedInvoices { invoices, is_cut } =
        load_owed_invoices(&state.store, session.taxpayer, OWED_MAX).await?;
    let catalog = state.catalog.get();
    let today = state.today();
    let balances = owed::customer_balances(&invoices, &catalog, today);
    let search_text = search.as_deref();
    let (rows, total) = if lists_all {
        let found =
            customers::page_owned_by(&state.store, session.taxpayer, search_text, page).await?;
        (customer_lines(found.0, &balances), found.1)
    } else {
        let lines = owing_customer_lines(balances);
        let total = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
        let shown = usize::try_from(page.per_page).unwrap_or(usize::MAX);
        (lines.into_iter().skip(skipped).take(shown).collect(), total)
    };
    let list_path = format!("{}/customers", base_path(&session));
    let page = CustomersPage {
        frame: Frame::for_account(&session, "Customers"),
        base: base_path(&session),
        pages: PagePosition::new(page, total, &list_path, &query),
        lists_all,
        search: search.unwrap_or_default(),
        totals: owed::totals_by_currency(&invoices, &catalog, today),
        rows,
        is_cut,
    };
    show_list(&page.pages, &page)
}

/// Returns a query string with one parameter.
fn query_with_parameter(name: &str, value: &str) -> String {
    let mut pairs = Serializer::new(String::new());
    pairs.append_pair(name, value);
    format!("?{}", pairs.finish())
}

/// Returns a line for each customer that owes something. The customers are in the order in which they first occur in
/// `balances`.
fn owing_customer_lines(balances: Vec<CustomerBalance>) -> Vec<CustomerLine> {
    let mut lines: Vec<CustomerLine> = Vec::new();
    let mut positions = BTreeMap::new();
    for balance in balances {
        let position = *positions.entry(balance.customer.0).or_insert(lines.len());
        if position == lines.len() {
            let number_and_tin = [String::new(), String::new()];
            lines.push(CustomerLine::new(
                balance.customer,
                balance.name.clone(),
                number_and_tin,
            ));
        }
        lines[position].add(balance);
    }
    lines
}

fn customer_lines(customers: Vec<Customer>, balances: &[CustomerBalance]) -> Vec<CustomerLine> {
    let lines = customers.into_iter().map(|customer| {
        let details = customer.details;
        let number_and_tin = [details.no, details.tin.unwrap_or_default()];
        let mut line = CustomerLine::new(customer.id, details.name, number_and_tin);
        let own_balances = balances.iter().filter(|one| one.customer == customer.id);
        own_balances.cloned().for_each(|balance| line.add(balance));
        line
    });
    lines.collect()
}

/// GET /dashboard/{taxpayer}/customers/{customer}: shows one customer with its balances and open invoices.
async fn show_customer(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let customer = find_customer(&state, &session, &ids.1).await?;
    let OwedInvoices { invoices, is_cut } =
        load_owed_invoices(&state.store, session.taxpayer, OWED_MAX).await?;
    let owed_invoices: Vec<_> = invoices
        .into_iter()
        .filter(|invoice| invoice.customer.id == customer.id)
        .collect();
    let catalog = state.catalog.get();
    let today = state.today();
    let line = |invoice: &OwedInvoice| {
        let owed = invoice.amount_due();
        let digits = catalog.currency_digits(&invoice.currency);
        OpenInvoiceLine {
            id: invoice.id,
            invoice_no: invoice.invoice_no.clone(),
            is_credit_note: invoice.is_credit_note,
            due_date: invoice.due_date,
            days_late: invoice.days_late(today).filter(|_| !owed.is_negative()),
            currency: invoice.currency.clone(),
            owed: owed.with_digits(digits),
        }
    };
    let lines: Vec<_> = owed_invoices.iter().map(line).collect();
    let address = &customer.details.address;
    let postal_code_and_city = [&address.postal_code, &address.city];
    let parts = [
        address.street_name.clone(),
        postal_code_and_city
            .map(String::as_str)
            .join(" ")
            .trim()
            .to_owned(),
        address.state.clone().unwrap_or_default(),
        address.country.clone(),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    show(&CustomerPage {
        frame: Frame::for_account(&session, &customer.details.name).with_section("Customers"),
        base: base_path(&session),
        all_invoices: base_path(&session)
            + "/invoices"
            + &query_with_parameter("customer_no", &customer.details.no),
        new_query: query_with_parameter("customer", &customer.details.no),
        address: parts.join(", "),
        balances: owed::customer_balances(&owed_invoices, &catalog, today),
        unlisted: lines.len().saturating_sub(INVOICES_SHOWN_MAX),
        invoices: lines.into_iter().take(INVOICES_SHOWN_MAX).collect(),
        customer,
        is_cut,
    })
}

/// Finds the customer whose id is in the path.
pub(super) async fn find_customer(
    state: &ApiState,
    session: &AccountSession,
    text: &str,
) -> Result<Customer, ApiError> {
    let id = parse_id(text)
        .map(CustomerId)
        .ok_or_else(ApiError::route_not_found)?;
    let found = customers::find_owned_by_id(state.store.reader(), session.taxpayer, id).await?;
    found.ok_or_else(ApiError::route_not_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(customer: i64, currency: &str, days_late: Option<i32>) -> CustomerBalance {
        CustomerBalance {
            customer: CustomerId(customer),
            name: format!("Shop {customer}"),
            currency: currency.to_owned(),
            documents: 1,
            owed: Amount::ZERO,
            overdue: Amount::ZERO,
            by_age: [Amount::ZERO; AGES.len()],
            days_late,
        }
    }

    #[test]
    fn each_row_has_its_currencies_in_the_same_order_and_the_longest_delay_of_them() {
        let balances = vec![
            balance(1, "USD", Some(90)),
            balance(2, "NGN", Some(40)),
            balance(1, "EUR", Some(3)),
            balance(3, "NGN", None),
            balance(2, "EUR", None),
            balance(1, "NGN", None),
        ];
        let lines = owing_customer_lines(balances);
        let found: Vec<_> = lines
            .iter()
            .map(|line| {
                let currencies = line.balances.iter().map(|one| one.currency.as_str());
                (line.id.0, currencies.collect::<Vec<_>>(), line.days_late)
            })
            .collect();
        let expected = [
            (1, vec!["EUR", "NGN", "USD"], Some(90)),
            (2, vec!["EUR", "NGN"], Some(40)),
            (3, vec!["NGN"], None),
        ];
        assert_eq!(found, expected);
    }
}
