//! The inbox: the list of suppliers' invoices, and one of them with its document and its acknowledgement.

use actix_web::web;
use askama::Template;
use authority_client::encode_path_segment;
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use crate::console::accounts::bulk_action::error_text;
use crate::console::accounts::bulk_selection::ticked_rows;
use crate::console::accounts::navigation::base_path;
use crate::console::filters;
use crate::console::form_values::FormValues;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, list_address, show_list};
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::accounts::{AccountSession, Accountant, Reader};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::DocumentKind;
use crate::domain::money::{Amount, group_digits};
use crate::domain::reference::catalog::Catalog;
use crate::domain::supplier_invoice::{SupplierInvoice, scalar_text};
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::store::operations::supplier_invoices::{self, DocumentSummary, InboxFilter};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/inbox").page(list_inbox),
        path("/dashboard/{taxpayer}/inbox/acknowledge").form(acknowledge_ticked),
        path("/dashboard/{taxpayer}/inbox/{irn}").page(show_received),
        path("/dashboard/{taxpayer}/inbox/{irn}/files/{file}").page(download_document),
        path("/dashboard/{taxpayer}/inbox/{irn}/acknowledge").form(acknowledge_invoice),
    ]
}

const PER_PAGE: u64 = 25;
/// The maximum number of invoices that one form acknowledges: as many as the longest page has.
const CHOSEN_MAX: usize = 100;
/// The number of invoices that are acknowledged concurrently.
const CONCURRENCY: usize = 4;

#[derive(Template)]
#[template(path = "accounts/inbox.html")]
struct InboxPage {
    frame: Frame,
    list_path: String,
    /// True if only invoices that are not acknowledged are listed.
    is_open_only: bool,
    search: String,
    /// True if any row can be ticked: it is not acknowledged, and the reader has the right to acknowledge it.
    can_choose: bool,
    rows: Vec<InboxRow>,
    pages: PagePosition,
}

struct InboxRow {
    line: InboxLine,
    summary: DocumentSummary,
    /// The amount with the decimal digits of its currency, or as the supplier wrote it if the currency is unknown.
    payable: String,
}

struct InboxLine {
    invoice: SupplierInvoice,
    /// The address of the invoice's page.
    page: String,
}

#[derive(Template)]
#[template(path = "accounts/received.html")]
struct ReceivedPage {
    frame: Frame,
    line: InboxLine,
    is_credit_note: bool,
    facts: Vec<(&'static str, String)>,
    lines: Vec<ReceivedLine>,
    document: String,
}

/// A line of a supplier's document, with its texts as the supplier wrote them and the digits of its numbers grouped.
#[derive(Debug, PartialEq, Eq)]
struct ReceivedLine {
    item: String,
    quantity: String,
    price: String,
    amount: String,
}

/// GET …/inbox: lists the newest first. `open=true` leaves out acknowledged invoices, and `q` searches for a text.
async fn list_inbox(state: web::Data<ApiState>, Reader(session): Reader, query: Query) -> Answer {
    let page = query.page(PER_PAGE);
    let search = query.trimmed_text("q").unwrap_or_default();
    let filter = InboxFilter {
        is_open: query.text("open") == Some("true"),
        text: Some(search.clone()).filter(|text| !text.is_empty()),
    };
    let is_open_only = filter.is_open;
    let taxpayer = session.taxpayer;
    let (found, total) =
        supplier_invoices::page_owned_by(&state.store, taxpayer, filter, page).await?;
    let keys = found.iter().map(|invoice| invoice.irn.key()).collect();
    let mut summaries = supplier_invoices::document_summaries(&state.store, taxpayer, keys).await?;
    let catalog = state.catalog.get();
    let rows = found.into_iter().map(|invoice| {
        let summary = summaries.remove(&invoice.irn.key()).unwrap_or_default();
        InboxRow {
            payable: payable_text(&summary, &catalog),
            line: InboxLine::new(&session, invoice),
            summary,
        }
    });
    let rows: Vec<_> = rows.collect();
    let list_path = format!("{}/inbox", base_path(&session));
    let frame = Frame::for_account(&session, "Inbox");
    let mut invoices = rows.iter().map(|row| &row.line.invoice);
    let has_open = invoices.any(|invoice| invoice.acknowledged_at.is_none());
    let page = InboxPage {
        can_choose: frame.can_act && has_open,
        frame,
        rows,
        pages: PagePosition::new(page, total, &list_path, &query),
        is_open_only,
        search,
        list_path,
    };
    show_list(&page.pages, &page)
}

/// Returns the amount with its currency; an empty text if the document has none.
fn payable_text(summary: &DocumentSummary, catalog: &Catalog) -> String {
    let Some(payable) = summary.payable else {
        return String::new();
    };
    let signed = if summary.is_credit_note {
        Amount::ZERO.minus(payable.abs()).unwrap_or(payable)
    } else {
        payable
    };
    let shown = signed.with_digits(catalog.currency_digits(&summary.currency));
    let amount = group_digits(&shown.to_string());
    format!("{} {amount}", summary.currency).trim().to_owned()
}

impl InboxLine {
    fn new(session: &AccountSession, invoice: SupplierInvoice) -> Self {
        Self {
            page: invoice_path(session, &invoice.irn),
            invoice,
        }
    }
}

fn invoice_path(session: &AccountSession, irn: &Irn) -> String {
    format!(
        "{}/inbox/{}",
        base_path(session),
        encode_path_segment(irn.as_str()).unwrap_or_default()
    )
}

/// Returns the invoice whose IRN is in the path. Fails if it is not in the taxpayer's inbox.
async fn find_invoice_in_inbox(
    state: &ApiState,
    session: &AccountSession,
    text: &str,
) -> Result<SupplierInvoice, ApiError> {
    let irn = path_ids::parse_irn(text)?;
    let found = supplier_invoices::find_owned_by_irn(&state.store, session.taxpayer, &irn).await?;
    found.ok_or_else(ApiError::invoice_not_found)
}

async fn find_document(
    state: &ApiState,
    session: &AccountSession,
    irn: &Irn,
) -> Result<Value, ApiError> {
    let found = supplier_invoices::document_owned_by(&state.store, session.taxpayer, irn).await?;
    found.ok_or_else(ApiError::invoice_not_found)
}

async fn show_received(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String)>,
) -> Answer {
    let invoice = find_invoice_in_inbox(&state, &session, &ids.1).await?;
    let document = find_document(&state, &session, &invoice.irn).await?;
    show(&ReceivedPage {
        frame: Frame::for_account(&session, "Supplier's invoice"),
        line: InboxLine::new(&session, invoice),
        is_credit_note: is_credit_note(&document),
        facts: document_fact_rows(&document, &state.catalog.get()),
        lines: received_lines(&document),
        document: format!("{document:#}"),
    })
}

/// GET …/files/{file}: sends the received document as PDF or JSON.
async fn download_document(
    state: web::Data<ApiState>,
    Reader(session): Reader,
    ids: web::Path<(String, String, String)>,
) -> Result<FileAnswer, ApiError> {
    let file = InvoiceFile::from_path(&ids.2).filter(|file| file.exists_for_received());
    let file = file.ok_or_else(ApiError::route_not_found)?;
    let invoice = find_invoice_in_inbox(&state, &session, &ids.1).await?;
    let document = find_document(&state, &session, &invoice.irn).await?;
    invoice_files::make_received_file(&state, session.taxpayer, &invoice.irn, &document, file).await
}

/// POST …/acknowledge: tells the authority that the invoice arrived, as the API call Acknowledge Supplier Invoice does.
async fn acknowledge_invoice(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let invoice = find_invoice_in_inbox(&state, &session, &ids.1).await?;
    state
        .inbound
        .acknowledge(session.taxpayer, &invoice.irn)
        .await?;
    Ok(go_to(
        &invoice_path(&session, &invoice.irn),
        "The invoice was acknowledged.",
    ))
}

/// POST …/inbox/acknowledge: acknowledges the ticked invoices of a page. If some could not be acknowledged, the notice
/// says why.
async fn acknowledge_ticked(
    state: web::Data<ApiState>,
    Accountant(session): Accountant,
    Form(values): Form<FormValues>,
) -> Answer {
    let chosen = ticked_rows(&values, |text| path_ids::parse_irn(text).ok())?;
    if chosen.len() > CHOSEN_MAX {
        let message = format!("At most {CHOSEN_MAX} invoices are acknowledged at once.");
        return Err(ApiError::new(ErrorCode::ValidationFailed, message));
    }
    let calls = chosen
        .iter()
        .map(|irn| acknowledge_by_irn(&state, &session, irn));
    let outcomes: Vec<_> = stream::iter(calls).buffered(CONCURRENCY).collect().await;
    let list_path = format!("{}/inbox", base_path(&session));
    let filters = [("open", "true"), ("q", values.text("q"))];
    let address = list_address(&list_path, &filters.into_iter().collect());
    Ok(go_to(&address, &acknowledged_notice(&outcomes)))
}

/// Acknowledges an invoice. If this fails, returns the reason in words.
async fn acknowledge_by_irn(
    state: &ApiState,
    session: &AccountSession,
    irn: &Irn,
) -> Result<(), String> {
    let done = state.inbound.acknowledge(session.taxpayer, irn).await;
    done.map(drop)
        .map_err(|error| format!("{irn}: {}", error_text(&error.into())))
}

fn acknowledged_notice(outcomes: &[Result<(), String>]) -> String {
    let failures: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .collect();
    let done = match outcomes.len() - failures.len() {
        1 => "1 invoice was acknowledged.".to_owned(),
        done => format!("{done} invoices were acknowledged."),
    };
    match failures.as_slice() {
        [] => done,
        [only] => format!("{done} One was not. {only}"),
        [first, ..] => format!("{done} {} were not. The first: {first}", failures.len()),
    }
}

fn is_credit_note(document: &Value) -> bool {
    DocumentKind::from_type_code(&text_at(document, "/invoice_type_code")).is_credit_note()
}

/// Returns the main facts of a document. Facts that the document lacks are left out. The amounts of a credit note have
/// a minus sign, whether the supplier wrote one or not, because the supplier owes them.
fn document_fact_rows(document: &Value, catalog: &Catalog) -> Vec<(&'static str, String)> {
    let fields = [
        ("Supplier", "/accounting_supplier_party/party_name"),
        ("Supplier's TIN", "/accounting_supplier_party/tin"),
        ("Supplier's email", "/accounting_supplier_party/email"),
        ("Customer", "/accounting_customer_party/party_name"),
        ("Issued", "/issue_date"),
        ("Due", "/due_date"),
        ("Currency", "/document_currency_code"),
        ("Before tax", "/legal_monetary_total/tax_exclusive_amount"),
        ("With tax", "/legal_monetary_total/tax_inclusive_amount"),
        ("Payable", "/legal_monetary_total/payable_amount"),
    ];
    let is_owed_to_us = is_credit_note(document);
    let currency = text_at(document, "/document_currency_code");
    let texts = fields.into_iter().map(|(label, pointer)| {
        let text = text_at(document, pointer);
        let is_amount = pointer.starts_with("/legal_monetary_total/");
        match text.parse::<Amount>() {
            Ok(amount) if is_amount => {
                let summary = DocumentSummary {
                    currency: currency.clone(),
                    payable: Some(amount),
                    is_credit_note: is_owed_to_us,
                    ..DocumentSummary::default()
                };
                (label, payable_text(&summary, catalog))
            }
            _ => (label, text),
        }
    });
    texts.filter(|(_, text)| !text.is_empty()).collect()
}

fn received_lines(document: &Value) -> Vec<ReceivedLine> {
    let line = |line: &Value| ReceivedLine {
        item: text_at(line, "/item/name"),
        quantity: group_number_digits(text_at(line, "/invoiced_quantity")),
        price: group_number_digits(text_at(line, "/price/price_amount")),
        amount: group_number_digits(text_at(line, "/line_extension_amount")),
    };
    let lines = document.get("invoice_line").and_then(Value::as_array);
    lines
        .map(|lines| lines.iter().map(line).collect())
        .unwrap_or_default()
}

/// Groups the digits of a number. Any other text that a supplier wrote is returned unchanged.
fn group_number_digits(text: String) -> String {
    if text.parse::<Amount>().is_ok() {
        group_digits(&text)
    } else {
        text
    }
}

fn text_at(document: &Value, pointer: &str) -> String {
    document
        .pointer(pointer)
        .map_or_else(String::new, scalar_text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credit_note_is_not_shown_like_a_bill() {
        for (code, payable, is_credit, shown) in [
            ("381", 1075_i64, false, "NGN 1,075.00"),
            ("381", -1075, false, "NGN -1,075.00"),
            ("380", 1075, true, "NGN -1,075.00"),
            ("380", -1075, true, "NGN -1,075.00"),
            ("380", 0, true, "NGN 0.00"),
            ("393", 1075, true, "NGN -1,075.00"),
        ] {
            let document = json!({
                "invoice_type_code": code, "document_currency_code": "NGN",
                "legal_monetary_total": { "payable_amount": payable },
            });
            assert_eq!(is_credit_note(&document), is_credit, "{code}");
            let expected = [
                ("Currency", "NGN".to_owned()),
                ("Payable", shown.to_owned()),
            ];
            let facts = document_fact_rows(&document, &Catalog::default());
            assert_eq!(facts, expected, "{code}");
            let known = DocumentSummary {
                currency: "NGN".to_owned(),
                payable: Some(payable.into()),
                is_credit_note: is_credit,
                ..DocumentSummary::default()
            };
            assert_eq!(payable_text(&known, &Catalog::default()), shown, "{code}");
        }
    }

    #[test]
    fn what_a_document_does_not_say_is_left_out() {
        let document = json!({
            "accounting_supplier_party": { "party_name": "S", "tin": { "odd": 1 } },
            "legal_monetary_total": { "payable_amount": 10_007.5 },
            "invoice_line": [{ "item": { "name": "Paper" }, "invoiced_quantity": 2 }, "odd"],
        });
        assert_eq!(
            document_fact_rows(&document, &Catalog::default()),
            [
                ("Supplier", "S".to_owned()),
                ("Payable", "10,007.50".to_owned())
            ]
        );
        let lines = received_lines(&document);
        assert_eq!(
            (
                lines[0].item.as_str(),
                lines[0].quantity.as_str(),
                lines[0].price.as_str()
            ),
            ("Paper", "2", "")
        );
        assert_eq!(lines.len(), 2);
        assert_eq!(super::received_lines(&json!("odd")), []);
    }
}
