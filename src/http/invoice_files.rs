//! The files of an invoice: the printed document as PDF ("the paper"), the UBL, the document as JSON, and the picture
//! of the QR code. The files of a signed invoice show the signed document, and other files the stored invoice.

use invoice_pdf::{Logo, Look, PdfError, Sheet, Standing};
use serde_json::Value;
use trade_document::TradeDocument;
use ubl::{UnmappedPart, UnwritableDocument};

use crate::domain::access::payer::Payer;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::qr_picture::QrPicture;
use crate::domain::invoice::stored_document::stored_path;
use crate::domain::invoice::trade::read_document;
use crate::domain::invoice::ubl_parts::tax_currency_warning;
use crate::domain::kernel::digest::canonical_text;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::domain::party::settings::{LogoFile, SettingChange};
use crate::domain::pipeline::{Operation, RunState};
use crate::http::forms::account_settings::unusable_logo_rule;
use crate::http::paper_texts;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::stored_invoice::{StoredInvoice, drop_refused_telephones};
use crate::store::accounts::{logos, taxpayers};
use crate::store::invoices::{ubl_parts, verify_links};
use crate::store::runs;

/// The fields of a line that the document of a stored invoice has, but that Submit does not know.
const LINE_TAX_FIELDS: [&str; 2] = ["tax_category", "total_tax"];

/// The kinds of files of an invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvoiceFile {
    Pdf,
    Ubl,
    Json,
    QrSvg,
    QrPng,
}

impl InvoiceFile {
    /// Returns the file that the last segment of a URL path names.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        match path.rsplit('/').next()? {
            "pdf" => Some(Self::Pdf),
            "ubl.xml" => Some(Self::Ubl),
            "json" => Some(Self::Json),
            "qr.svg" => Some(Self::QrSvg),
            "qr.png" => Some(Self::QrPng),
            _ => None,
        }
    }

    /// True for the kinds of files that exist for a received document, too.
    pub(crate) fn exists_for_received(self) -> bool {
        matches!(self, Self::Pdf | Self::Json)
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Ubl => "application/xml",
            Self::Json => "application/json",
            Self::QrSvg => "image/svg+xml",
            Self::QrPng => "image/png",
        }
    }

    /// Returns the name under which a browser saves the file.
    fn saved_name(self, invoice_no: &str) -> String {
        let extension = match self {
            Self::Pdf => ".pdf",
            Self::Ubl => ".xml",
            Self::Json => ".json",
            Self::QrSvg => "-qr.svg",
            Self::QrPng => "-qr.png",
        };
        let name: String = invoice_no
            .chars()
            .map(|sign| {
                if sign.is_ascii_alphanumeric() || "-_.".contains(sign) {
                    sign
                } else {
                    '_'
                }
            })
            .collect();
        format!("{name}{extension}")
    }
}

/// Makes a file of an invoice. `origin` is the address that links to this service begin with (`ApiState::origin`).
pub(crate) async fn make_file(
    state: &ApiState,
    origin: Option<&str>,
    stored: &StoredInvoice,
    file: InvoiceFile,
) -> Result<FileAnswer, ApiError> {
    let qr_code = &stored.invoice.authority.qr_code;
    let mut warnings = Vec::new();
    let bytes = match file {
        InvoiceFile::QrSvg => draw_qr_code(qr_code)?.svg().into_bytes(),
        InvoiceFile::QrPng => draw_qr_code(qr_code)?.png().map_err(ApiError::internal)?,
        InvoiceFile::Json => {
            canonical_text(&signed_or_submittable_document(state, stored).await?).into_bytes()
        }
        InvoiceFile::Ubl => {
            let document = shown_trade_document(state, stored).await?;
            let tax_currency = document.tax_currency.clone();
            let text = ubl_text(state, stored, document).await?;
            warnings.extend(tax_currency_warning(tax_currency.as_deref(), &text));
            text.into_bytes()
        }
        InvoiceFile::Pdf => {
            let document = shown_trade_document(state, stored).await?;
            warnings.extend(unprintable_pdf_warning(state, stored, &document));
            let code = stored.invoice.signed_qr_code();
            warnings.extend(code.and_then(paper_texts::unprintable_qr_warning));
            let paper = PdfContent {
                unmapped_parts: unmapped_ubl_parts(state, stored, &document).await?,
                document,
                look: document_look(state, &stored.supplier).await?,
                standing: if stored.invoice.authority.signed {
                    Standing::Signed
                } else {
                    Standing::Draft
                },
                qr_code: code.map(str::to_owned),
                verify_link: public_page_url(state, origin, &stored.invoice).await?,
            };
            print_pdf(state, stored.supplier.payer(), paper).await?
        }
    };
    Ok(FileAnswer {
        media_type: file.media_type(),
        name: file.saved_name(&stored.invoice.invoice_no),
        bytes,
        warnings,
    })
}

/// Returns a warning that names the texts with letters that no font of the PDF has.
fn unprintable_pdf_warning(
    state: &ApiState,
    stored: &StoredInvoice,
    document: &TradeDocument,
) -> Option<String> {
    let catalog = state.catalog.get();
    let paths: Vec<_> = paper_texts::unprintable_paths(document)
        .iter()
        .map(|path| stored_path(&stored.invoice, &catalog, path))
        .collect();
    paper_texts::unprintable_warning(&paths)
}

fn draw_qr_code(text: &str) -> Result<QrPicture, ApiError> {
    QrPicture::from_text(text).ok_or_else(|| ApiError::internal("the QR code cannot be drawn"))
}

/// Returns the document that the authority signed; if there is none, the document of the stored invoice.
async fn signed_or_stored_document(
    state: &ApiState,
    stored: &StoredInvoice,
) -> Result<Value, ApiError> {
    match signed_document(state, stored).await? {
        Some(document) => Ok(document),
        None => Ok(Value::Object(stored.document(&state.catalog.get())?)),
    }
}

/// Returns the document that the authority signed. If there is none, returns what Submit sends for the IRN alone, so
/// that a caller can send it to Submit unchanged.
async fn signed_or_submittable_document(
    state: &ApiState,
    stored: &StoredInvoice,
) -> Result<Value, ApiError> {
    if let Some(document) = signed_document(state, stored).await? {
        return Ok(document);
    }
    let mut document = stored.document(&state.catalog.get())?;
    // The warnings are dropped here: Submit returns them, and the caller can see the refused number in the profile.
    drop_refused_telephones(&mut document);
    let lines = document
        .get_mut("invoice_line")
        .and_then(Value::as_array_mut);
    for line in lines.into_iter().flatten().filter_map(Value::as_object_mut) {
        for name in LINE_TAX_FIELDS {
            line.remove(name);
        }
    }
    Ok(Value::Object(document))
}

async fn signed_document(
    state: &ApiState,
    stored: &StoredInvoice,
) -> Result<Option<Value>, ApiError> {
    let reader = state.store.reader();
    let key = stored.invoice.irn.key();
    let runs = runs::find_owned_by_irn_keys(reader, stored.supplier.id, vec![key]).await?;
    let signed = runs
        .iter()
        .find(|run| run.operation() == Operation::Submit && run.state() == RunState::Succeeded);
    let document = signed.and_then(|run| run.payload.submission());
    Ok(document.map(|document| document.as_json().clone()))
}

/// Returns the UBL of an invoice. Fails with a fault that names the field that UBL cannot hold.
async fn ubl_text(
    state: &ApiState,
    stored: &StoredInvoice,
    document: TradeDocument,
) -> Result<String, ApiError> {
    let unmapped_parts = unmapped_ubl_parts(state, stored, &document).await?;
    let text = state
        .printing
        .compute_in_payer_turn(stored.supplier.payer(), move || {
            ubl::write_with_parts(&document, &unmapped_parts)
        })
        .await?;
    let reason = match text {
        Ok(text) => return Ok(text),
        Err(reason) => reason,
    };
    let path = match &reason {
        UnwritableDocument::DocumentType { .. } => "invoice_type_code".to_owned(),
        UnwritableDocument::TaxCategory(_) => "tax_total".to_owned(),
        UnwritableDocument::NoLines => "invoice_line".to_owned(),
        UnwritableDocument::Orders(_) => "order_reference".to_owned(),
        UnwritableDocument::Character { element, character } => {
            let shown = signed_or_stored_document(state, stored).await?;
            let path = char::from_u32(*character)
                .and_then(|letter| paper_texts::find_text_with_character(letter, &shown));
            match path {
                Some(path) => stored_path(&stored.invoice, &state.catalog.get(), &path),
                // The character is not in the document but in the UBL parts that are stored beside it.
                None => element.clone(),
            }
        }
    };
    Err(Fault::new(path, "ubl", format!("{reason}.")).into())
}

/// Makes a file of an invoice that a supplier sent. The document is shown as the supplier sent it.
pub(crate) async fn make_received_file(
    state: &ApiState,
    receiver: TaxpayerId,
    irn: &Irn,
    document: &Value,
    file: InvoiceFile,
) -> Result<FileAnswer, ApiError> {
    let mut warnings = Vec::new();
    let bytes = if file == InvoiceFile::Pdf {
        let document = read_document(document, &state.catalog.get());
        let document = document
            .map_err(|reason| Fault::new("supplier_irn", "readable", format!("{reason}.")))?;
        let paths = paper_texts::unprintable_paths(&document);
        warnings.extend(paper_texts::unprintable_warning(&paths));
        let paper = PdfContent {
            document,
            unmapped_parts: Vec::new(),
            look: Look::default(),
            standing: Standing::Received,
            qr_code: None,
            verify_link: None,
        };
        print_pdf(state, find_payer(state, receiver).await?, paper).await?
    } else {
        canonical_text(document).into_bytes()
    };
    Ok(FileAnswer {
        media_type: file.media_type(),
        name: file.saved_name(irn.invoice_no()),
        bytes,
        warnings,
    })
}

/// Reads the document that the files show, and adds stored values that have no field in the document.
pub(crate) async fn shown_trade_document(
    state: &ApiState,
    stored: &StoredInvoice,
) -> Result<TradeDocument, ApiError> {
    let document = signed_or_stored_document(state, stored).await?;
    let catalog = state.catalog.get();
    let mut trade_document = read_document(&document, &catalog).map_err(ApiError::internal)?;
    stored.complete_document(&mut trade_document, &catalog);
    Ok(trade_document)
}

/// Returns the parts of an imported UBL file that no field of the invoice holds, as far as they still fit the document.
async fn unmapped_ubl_parts(
    state: &ApiState,
    stored: &StoredInvoice,
    document: &TradeDocument,
) -> Result<Vec<UnmappedPart>, ApiError> {
    let parts = ubl_parts::load_for_invoice(&state.store, &stored.invoice).await?;
    let customer = stored.invoice.customer.id;
    let fitting = parts.map(|parts| parts.fitting_parts(document, customer));
    Ok(fitting.unwrap_or_default())
}

/// Returns the address of the public page of a signed invoice; `None` if the invoice is not signed or the `origin` is
/// not known.
pub(crate) async fn public_page_url(
    state: &ApiState,
    origin: Option<&str>,
    invoice: &Invoice,
) -> Result<Option<String>, ApiError> {
    let Some(origin) = origin.filter(|_| invoice.authority.signed) else {
        return Ok(None);
    };
    let token = verify_links::load_or_create_token(&state.store, invoice).await?;
    Ok(Some(format!("{origin}/verify/{token}")))
}

/// Returns the template, the colour and the logo that the taxpayer chose for its documents.
async fn document_look(state: &ApiState, taxpayer: &Taxpayer) -> Result<Look, ApiError> {
    let settings = &taxpayer.settings;
    let mut look = Look {
        template: settings.template,
        colour: settings.accent.unwrap_or_default(),
        logo: None,
    };
    if let Some(logo) = &settings.logo
        && let Some(bytes) = logos::owned_by(state.store.reader(), taxpayer.id).await?
    {
        // The kind and the bytes are read in separate transactions. If the logo changes in between and they do not
        // match, the document is printed without a logo.
        look.logo = Logo::new(logo.kind, bytes).ok();
    }
    Ok(look)
}

/// Refuses a new logo that cannot be printed.
pub(crate) async fn check_logo(
    state: &ApiState,
    taxpayer: TaxpayerId,
    logo: &SettingChange<LogoFile>,
) -> Result<(), ApiError> {
    let SettingChange::Set(file) = logo else {
        return Ok(());
    };
    let payer = find_payer(state, taxpayer).await?;
    let LogoFile { kind, bytes } = file.clone();
    let checked = state.printing.compute_in_payer_turn(payer, move || {
        Logo::new(kind, bytes.to_vec()).and_then(|logo| logo.check_printable())
    });
    checked.await?.map_err(|refusal| {
        let rule = match refusal {
            PdfError::Logo(reason) => unusable_logo_rule(reason),
            other => unusable_logo_rule(&other.to_string()),
        };
        Fault::field("logo", rule).into()
    })
}

/// Returns the account against whose limit the printed documents of a taxpayer count.
async fn find_payer(state: &ApiState, taxpayer: TaxpayerId) -> Result<Payer, ApiError> {
    let taxpayer = taxpayers::find_by_id(state.store.reader(), taxpayer).await?;
    Ok(taxpayer.ok_or_else(ApiError::taxpayer_not_found)?.payer())
}

/// Everything that is printed on a document.
struct PdfContent {
    document: TradeDocument,
    /// The parts of an imported UBL file that no field holds, for the UBL file within the PDF.
    unmapped_parts: Vec<UnmappedPart>,
    look: Look,
    standing: Standing,
    qr_code: Option<String>,
    verify_link: Option<String>,
}

async fn print_pdf(state: &ApiState, payer: Payer, pdf: PdfContent) -> Result<Vec<u8>, ApiError> {
    let printed = state.printing.compute_in_payer_turn(payer, move || {
        let ubl = ubl::write_with_parts(&pdf.document, &pdf.unmapped_parts).ok();
        invoice_pdf::render(&Sheet {
            document: &pdf.document,
            look: &pdf.look,
            standing: pdf.standing,
            qr: pdf.qr_code.as_deref(),
            verify_link: pdf.verify_link.as_deref(),
            ubl: ubl.as_deref().map(str::as_bytes),
        })
    });
    printed.await?.map_err(|refusal| match refusal {
        // The caller can do nothing about this error, but operators have to know of it.
        PdfError::Internal(_) => ApiError::internal(refusal),
        PdfError::Logo(reason) => Fault::field("logo", unusable_logo_rule(reason)).into(),
        _ => Fault::new("invoice_lines", "printable", refusal.to_string()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_saved_under_a_name_that_every_system_takes() {
        let cases = [
            ("INV-2026.7", InvoiceFile::Pdf, "INV-2026.7.pdf"),
            ("E-20/1", InvoiceFile::Ubl, "E-20_1.xml"),
            ("a\"b\r\nç", InvoiceFile::QrPng, "a_b___-qr.png"),
        ];
        for (number, file, name) in cases {
            assert_eq!(file.saved_name(number), name);
        }
    }

    #[test]
    fn the_end_of_a_path_names_the_file() {
        let paths = [
            "/x/1/pdf",
            "/x/1/ubl.xml",
            "/x/1/json",
            "/x/1/qr.svg",
            "/x/1/qr.png",
            "/x/1/qr.gif",
        ];
        let media_types =
            paths.map(|path| InvoiceFile::from_path(path).map(InvoiceFile::media_type));
        let expected = [
            Some("application/pdf"),
            Some("application/xml"),
            Some("application/json"),
            Some("image/svg+xml"),
            Some("image/png"),
            None,
        ];
        assert_eq!(media_types, expected);
    }
}
