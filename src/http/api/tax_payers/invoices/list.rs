//! List Invoices, as pages of JSON or as a file of the whole list. A page that contains large invoices is sent invoice
//! by invoice: an invoice is loaded when the caller has read the previous invoice. So a page of a hundred large
//! invoices takes no more memory than one large invoice.

use std::collections::HashMap;
use std::vec;

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::{Stream, stream};

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::access::payer::PayingAccount;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::kernel::codes::{Category, PaymentStatus};
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::http::exports::{self, TableFormat, vary_by_accept};
use crate::http::extract::auth;
use crate::http::extract::reading_right::ReadingRight;
use crate::http::forms::invoice_filters;
use crate::http::forms::query::Query;
use crate::http::limits::{ANSWER_PART_BYTES, AnswerHolder, AnswerPermit};
use crate::http::openapi::{OperationDoc, doc};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::{ApiResponse, success_text};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::store::invoices;
use crate::store::invoices::list::InvoiceSort;

const SUCCESS_MESSAGE: &str = "Invoice retrieved successfully";

pub(super) fn list_doc() -> OperationDoc {
    doc("list_invoices", "List Invoices, newest first")
        .with_note(
            "The next cursor comes in `x-next-cursor` and `Link`. \
             With `Accept: text/csv`, `application/x-ndjson` or the \
             type of XLSX, the answer is a file of the whole list, \
             whatever the page. XLSX is written whole before its first \
             byte is sent.",
        )
        .with_paging("10 by default, 100 at most")
        .query("batch_no", "of a batch number from Bulk")
        .query(
            "status",
            "of a workflow status, or of one of several with commas \
             between them",
        )
        .query_word(
            "payment_status",
            PaymentStatus::allowed_words,
            "of a payment status",
        )
        .query(
            "authority_status",
            "of a status at the authority, or of one of several with \
             commas between them",
        )
        .query_word(
            "invoice_category",
            Category::allowed_words,
            "of a kind of customer",
        )
        .query("date_from", "issued on this day or later, YYYY-MM-DD")
        .query("date_to", "issued on this day or before, YYYY-MM-DD")
        .query("due_before", "due before this day, YYYY-MM-DD")
        .query("due_after", "due after this day, YYYY-MM-DD")
        .query("overdue", "true: due before today and something is left to pay; no drafts, credit notes or cancelled invoices")
        .query(
            "refund_due",
            "true: more was paid than signed credit notes and the signed \
             amount leave, so a part is to be paid back",
        )
        .query("without_cancelled", "true: no cancelled invoices")
        .query("currency", "in this currency, ISO 4217, such as NGN")
        .query(
            "amount_min",
            "with at least this payable amount, whatever its currency; \
             send currency, too, to compare like with like",
        )
        .query(
            "amount_max",
            "with at most this payable amount, whatever its currency",
        )
        .query("customer_no", "of a customer, by the number that was sent")
        .query("q", "part of a number, an IRN or a customer's name")
        .query("updated_since", "changed at this moment or later, RFC 3339")
        .query_word(
            "sort",
            InvoiceSort::allowed_words,
            "the order, with - before the word for descending; -created_at by default",
        )
        .query(
            "cursor",
            "where to go on: the x-next-cursor of the page before, with the same sort",
        )
        .with_page_response::<InvoiceObject<'_>>("Invoice retrieved successfully")
        .with_answer_files(&TableFormat::MEDIA_TYPES)
        .with_errors(&[ErrorCode::ValidationFailed])
}

/// GET /v1/tax-payers/invoices (List Invoices in spec.md): returns a page of the taxpayer's invoices. Response headers
/// say where the next page starts. A caller that accepts a file format gets the whole list as a file.
pub(super) async fn list_invoices(
    state: web::Data<ApiState>,
    request: HttpRequest,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    query: Query,
) -> Result<HttpResponse, ApiError> {
    let list_query = invoice_filters::read(&query, state.today(), &state.catalog.get())?;
    let payer = auth::paying_account(&request).map(PayingAccount::payer);
    let holder = AnswerHolder::for_taxpayer(taxpayer, payer);
    let right = ReadingRight::from_key(&request, &state);
    if let Some(format) = TableFormat::from_accept_header(&request) {
        let list = list_query.into_list(taxpayer);
        let file = exports::invoices_file(&state, holder, right, list, format).await?;
        return Ok(vary_by_accept(file));
    }
    let page = list_query.page;
    let bounds = list_query.page_bounds();
    let list = list_query.into_list(taxpayer);
    let found_page = list.page(&state.store, bounds).await?;
    let answer = if found_page.long_invoices.is_empty() {
        let items = found_page
            .invoices
            .iter()
            .map(InvoiceObject::from)
            .collect();
        ApiResponse::ok(
            SUCCESS_MESSAGE,
            Paginator::new(page, found_page.total, items),
        )
    } else {
        let frame = success_text(
            SUCCESS_MESSAGE,
            Paginator::<()>::new(page, found_page.total, Vec::new()),
        )?;
        let page = UnsentInvoices {
            state,
            taxpayer: list.taxpayer,
            holder,
            right,
            invoices: found_page.invoices.into_iter(),
            long_invoices: found_page.long_invoices,
        };
        ApiResponse::from_stream(stream_page(page, &frame))
    };
    let Some(next_position) = found_page.next else {
        return Ok(vary_by_accept(answer.into()));
    };
    let cursor = invoice_filters::encode_cursor(list.sort, next_position);
    let next_path = invoice_filters::next_page_path(&query, &cursor);
    Ok(vary_by_accept(
        answer.with_next_page(&cursor, &next_path).into(),
    ))
}

/// The invoices of a page that have not been sent yet.
struct UnsentInvoices {
    state: web::Data<ApiState>,
    taxpayer: TaxpayerId,
    holder: AnswerHolder,
    right: ReadingRight,
    invoices: vec::IntoIter<Invoice>,
    /// The invoices whose long fields are not loaded yet, with the size of these fields in bytes.
    long_invoices: HashMap<InvoiceId, usize>,
}

/// The part of the answer that is being sent: its unsent text, and the memory reserved for the part.
struct AnswerPart {
    unsent: Bytes,
    _room: Option<AnswerPermit>,
}

impl AnswerPart {
    fn new(
        invoice: &Invoice,
        separator: &str,
        room: Option<AnswerPermit>,
    ) -> Result<Self, ApiError> {
        let mut text = separator.as_bytes().to_vec();
        serde_json::to_writer(&mut text, &InvoiceObject::from(invoice))
            .map_err(ApiError::internal)?;
        Ok(Self {
            unsent: text.into(),
            _room: room,
        })
    }
}

/// Sends the text of a page: its start, its invoices, and its end.
struct PageSender {
    page: UnsentInvoices,
    part: AnswerPart,
    separator: &'static str,
    end: Option<Bytes>,
}

/// Streams the answer part by part. `frame` is the text of the whole answer with an empty list of invoices.
fn stream_page(
    page: UnsentInvoices,
    frame: &str,
) -> impl Stream<Item = Result<Bytes, ApiError>> + use<> {
    let (start, end) = frame.split_once("[]").unwrap_or((frame, ""));
    let part = AnswerPart {
        unsent: Bytes::from(format!("{start}[")),
        _room: None,
    };
    let end = Some(Bytes::from(format!("]{end}")));
    let sender = PageSender {
        page,
        part,
        separator: "",
        end,
    };
    stream::try_unfold(sender, |mut sender| async {
        if sender.part.unsent.is_empty() {
            let next = sender.next_part().await;
            let Some(next) = next.inspect_err(exports::log_aborted_download)? else {
                return Ok(None);
            };
            sender.part = next;
        }
        let length = sender.part.unsent.len().min(ANSWER_PART_BYTES);
        let bytes = sender.part.unsent.split_to(length);
        Ok(Some((bytes, sender)))
    })
}

impl PageSender {
    /// Returns the next part of the text; `None` after the end.
    async fn next_part(&mut self) -> Result<Option<AnswerPart>, ApiError> {
        // Frees the memory of the last part before memory is reserved for the next one.
        self.part = AnswerPart {
            unsent: Bytes::new(),
            _room: None,
        };
        let Some(invoice) = self.page.invoices.next() else {
            return Ok(self.end.take().map(|unsent| AnswerPart {
                unsent,
                _room: None,
            }));
        };
        let part = self.page.render_invoice(invoice, self.separator).await?;
        self.separator = ",";
        Ok(Some(part))
    }
}

impl UnsentInvoices {
    /// Renders an invoice with a separator before it. Loads the long fields of the invoice if they are missing.
    async fn render_invoice(
        &self,
        invoice: Invoice,
        separator: &str,
    ) -> Result<AnswerPart, ApiError> {
        let Some(bytes) = self.long_invoices.get(&invoice.id) else {
            return AnswerPart::new(&invoice, separator, None);
        };
        self.right.require_still_held().await?;
        let room = self.state.answers.reserve(self.holder, *bytes).await;
        let room = room.ok_or_else(|| ApiError::internal("no memory for a part of a list"))?;
        let _turn = self.state.answers.wait_for_rendering_turn().await;
        let complete_invoice =
            invoices::find_owned_by_id(&self.state.store, self.taxpayer, invoice.id).await?;
        AnswerPart::new(
            complete_invoice.as_ref().unwrap_or(&invoice),
            separator,
            Some(room),
        )
    }
}
