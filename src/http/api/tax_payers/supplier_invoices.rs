//! The inbox of supplier invoices. If the authority fails, the stored copy of an invoice is returned, with a warning in
//! the headers.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::supplier_invoice::SupplierInvoice;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, supplier_irn};
use crate::http::idempotency::IdempotentRequest;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::openapi::{doc, example, invoice_file, schema};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::views::inbox::{Acknowledgement, InboxLine};
use crate::http::views::paginator::Paginator;
use crate::store::operations::supplier_invoices::{self, InboxFilter};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/supplier-invoices").get(list_supplier_invoices, || {
            doc(
                "list_supplier_invoices",
                "Inbox: the supplier invoices the caller was notified about",
            )
            .with_note(
                "The invoices that suppliers sent to the taxpayer, \
                 newest first.",
            )
            .with_paging("10 by default, 100 at most")
            .with_page_response::<InboxLine>("Supplier invoices retrieved successfully")
        }),
        path("/v1/tax-payers/supplier-invoices/{supplier_irn}/pdf")
            .waits_for_other_systems()
            .get(get_received_file, || {
                invoice_file(
                    "get_supplier_invoice_pdf",
                    "A supplier's invoice on paper",
                    "application/pdf",
                )
                .with_errors(&[ErrorCode::NotAddressedToCaller])
            }),
        path("/v1/tax-payers/supplier-invoices/{supplier_irn}/json")
            .waits_for_other_systems()
            .get(get_received_file, || {
                invoice_file(
                    "get_supplier_invoice_json",
                    "A supplier's document as canonical JSON",
                    "application/json",
                )
                .with_errors(&[ErrorCode::NotAddressedToCaller])
            }),
        path("/v1/tax-payers/invoices/get-supplier-invoice")
            .never_writes()
            .waits_for_other_systems()
            .post(get_supplier_invoice, || {
                doc("get_supplier_invoice", "Get Supplier Invoice")
                    .with_note(
                        "The supplier's document as the authority has it; as it was \
                         at receipt, if the authority does not answer.",
                    )
                    .with_body(supplier_irn::read, example!("supplier_irn"))
                    .with_schema_response(
                        200,
                        "Supplier invoice retrieved successfully",
                        schema::envelope(schema::object()),
                    )
                    .with_errors(&[ErrorCode::NotAddressedToCaller])
            }),
        acknowledgement_path(),
    ]
}

fn acknowledgement_path() -> Path {
    path("/v1/tax-payers/invoices/acknowledge-supplier-invoice")
        .waits_for_other_systems()
        .post(acknowledge_supplier_invoice, || {
            doc(
                "acknowledge_supplier_invoice",
                "Acknowledge Supplier Invoice",
            )
            .with_note(
                "Tells the authority that the taxpayer has received the \
                 document. A second time is refused.",
            )
            .with_body(supplier_irn::read, example!("supplier_irn"))
            .with_response::<Acknowledgement>(200, "Supplier invoice acknowledged successfully")
            .with_idempotency_key()
            .with_errors(&[
                ErrorCode::NotAddressedToCaller,
                ErrorCode::AlreadyAcknowledged,
            ])
            .with_errors(&[ErrorCode::AuthorityRejected, ErrorCode::InvoiceNotFound])
            .with_errors(&[ErrorCode::AuthorityUnavailable, ErrorCode::AuthorityTimeout])
        })
}

const PER_PAGE_DEFAULT: u64 = 10;

/// GET /v1/tax-payers/supplier-invoices: lists the inbox, newest first.
async fn list_supplier_invoices(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (received, total) =
        supplier_invoices::page_owned_by(&state.store, id, InboxFilter::default(), page).await?;
    let items = received.into_iter().map(InboxLine::from).collect();
    Ok(ApiResponse::ok(
        "Supplier invoices retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

const STORED_COPY_WARNING: &str =
    "the authority could not be asked: this is the document as it was at receipt";

/// POST /v1/tax-payers/invoices/get-supplier-invoice (Get Supplier Invoice in spec.md): returns a received invoice, or
/// its stored copy if the authority fails.
async fn get_supplier_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let mut form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        supplier_irn::read,
    )?;
    let irn = supplier_irn::parse(&form.value)?;
    let loaded = state.inbound.load_document(id, &irn).await?;
    if !loaded.is_live {
        form.warnings.push(STORED_COPY_WARNING.to_owned());
    }
    let answer = ApiResponse::ok("Supplier invoice retrieved successfully", loaded.document);
    Ok(answer.warn(&form.warnings))
}

/// GET `/v1/tax-payers/supplier-invoices/{supplier_irn}/pdf` and `/json`: returns the received document as a file.
async fn get_received_file(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    irn: web::Path<String>,
    request: HttpRequest,
) -> Result<FileAnswer, ApiError> {
    let file = InvoiceFile::from_path(request.path()).ok_or_else(ApiError::route_not_found)?;
    let irn = path_ids::parse_irn(&irn)?;
    let loaded = state.inbound.load_document(id, &irn).await?;
    let mut answer =
        invoice_files::make_received_file(&state, id, &irn, &loaded.document, file).await?;
    if !loaded.is_live {
        answer.warnings.push(STORED_COPY_WARNING.to_owned());
    }
    Ok(answer)
}

/// POST /v1/tax-payers/invoices/acknowledge-supplier-invoice (Acknowledge Supplier Invoice in spec.md): acknowledges a
/// received invoice to the authority, then in the inbox.
async fn acknowledge_supplier_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        supplier_irn::read,
    )?;
    let irn = supplier_irn::parse(&form.value)?;
    let command = state.inbound.acknowledge_to_authority(id, &irn).await?;
    let warnings = form.warnings;
    let respond = move |invoice: &SupplierInvoice| {
        let view = Acknowledgement::from(invoice.clone());
        ApiResponse::ok("Supplier invoice acknowledged successfully", view).warn(&warnings)
    };
    idempotent
        .answer_once(&state.taxpayers, id, command, respond)
        .await
}
