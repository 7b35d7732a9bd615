//! Creates one invoice: checks the account, looks for a duplicate, and resolves the customer, the items and the IRN.
//! The customer and the items that an invoice names are created if they are not stored yet.

use serde_json::json;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::batch::Duplicate;
use crate::domain::invoice::irn::{Irn, is_submittable_number};
use crate::domain::invoice::item::Item;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity, Line, provisional_qr_code};
use crate::domain::kernel::codes::Category;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::{Customer, CustomerDetails, InvoiceCustomer, Taxpayer};
use crate::domain::payment::Posting;
use crate::store::ids::IdKind;
use crate::store::invoices::customers_and_items::ItemIdentifiers;
use crate::store::invoices::payments;

/// Creates an invoice, or returns the existing one.
pub struct CreateInvoice(pub Draft);

/// The result of a create: the new invoice, or the existing one if the invoice is a duplicate.
#[derive(Debug, Clone)]
pub struct CreatedInvoice {
    pub invoice: Invoice,
    pub duplicate: Option<Duplicate>,
}

impl TaxpayerCommand for CreateInvoice {
    type Output = CreatedInvoice;

    const NAME: &'static str = "create";

    fn size(&self) -> CommandSize {
        CommandSize::for_draft(&self.0)
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        add_wanted_ids(&self.0, wanted);
    }

    fn contents_for_replay(&self) -> Option<String> {
        serde_json::to_string(&self.0).ok()
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        add_draft_reads(&self.0, wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<CreatedInvoice, Refusal> {
        add_invoice(uow, &self.0)
    }
}

/// Adds to `wanted` one id each for the invoice, for its customer and for the item of each line, because all of them
/// may be new.
pub(super) fn add_wanted_ids(draft: &Draft, wanted: &mut WantedIdCounts) {
    wanted.add(IdKind::Invoice, 1);
    wanted.add(IdKind::Customer, 1);
    wanted.add(IdKind::Item, draft.lines.len());
}

/// Adds to `wanted` the rows that are needed to create an invoice: its duplicates, its customer and its items.
pub(super) fn add_draft_reads(draft: &Draft, wanted: &mut ReadSet, context: &ReadContext<'_>) {
    wanted.add_invoice_no(&draft.invoice_no);
    let taxpayer = context.cached.taxpayer.as_ref();
    let irn = draft.irn.clone().or_else(|| {
        Irn::for_invoice(&draft.invoice_no, &taxpayer?.service_id, draft.invoice_date).ok()
    });
    if let Some(irn) = irn {
        wanted.add_irn(&irn);
    }
    wanted.add_customer(&draft.customer);
    draft
        .lines
        .iter()
        .for_each(|line| add_item_identifier(line, wanted.items_mut()));
}

fn add_item_identifier(line: &Line, items: &mut ItemIdentifiers) {
    match &line.item_no {
        Some(no) => items.numbers.insert(no.clone()),
        None => items.names.insert(line.item_name.clone()),
    };
}

/// Adds an invoice, or returns the existing invoice that has the same number or IRN.
pub(super) fn add_invoice(uow: &mut UnitOfWork, draft: &Draft) -> Result<CreatedInvoice, Refusal> {
    let taxpayer = uow.taxpayer()?;
    taxpayer.check_may_create_invoices(uow.verification)?;
    let irn = determine_irn(draft, taxpayer)?;
    if let Some(existing) = find_existing_invoice(uow, draft, &irn) {
        if draft.irn.is_none() && existing.invoice_no != draft.invoice_no {
            return Err(irn_taken_refusal(&irn, &existing.invoice_no));
        }
        return Ok(CreatedInvoice {
            invoice: existing.clone(),
            duplicate: Some(compare_with_existing(draft, existing)),
        });
    }
    check_invoice_number(taxpayer, draft, &irn)?;
    let customer = resolve_customer(uow, &draft.customer, draft.category);
    let (mut invoice, posting) = new_invoice(uow, draft, irn, customer);
    resolve_items(uow, &mut invoice.lines);
    put_new_invoice(uow, &invoice, posting);
    Ok(CreatedInvoice {
        invoice,
        duplicate: None,
    })
}

/// Finds the stored customer, or adds a new one. A stored customer gets from `details` only what it lacks: a tax
/// number, and a country that the authority accepts. Returns the customer as the invoice shows it.
pub(super) fn resolve_customer(
    uow: &mut UnitOfWork,
    details: &CustomerDetails,
    category: Category,
) -> InvoiceCustomer {
    let Some(mut customer) = uow.customer(details).cloned() else {
        let customer = Customer {
            id: uow.next_customer_id(),
            category,
            details: details.clone(),
        };
        let shown = invoice_customer(&customer, details);
        uow.put_customer(customer);
        return shown;
    };
    let has_new_tin = customer.fill_tin(details.tin.as_ref());
    let has_new_country = customer.replace_unlisted_country(&details.address.country, &uow.catalog);
    let shown = invoice_customer(&customer, details);
    if has_new_tin || has_new_country {
        uow.put_customer(customer);
    }
    shown
}

/// Returns the stored data of the customer, but with the customer number that the caller sent with this invoice.
fn invoice_customer(customer: &Customer, details: &CustomerDetails) -> InvoiceCustomer {
    InvoiceCustomer {
        id: customer.id,
        external_customer_no: details.no.clone(),
        name: customer.details.name.clone(),
        tin: customer.details.tin.clone(),
        email: customer.details.email.clone(),
    }
}

/// Sets the item id of each line. Adds items that the catalog does not have.
pub(super) fn resolve_items(uow: &mut UnitOfWork, lines: &mut [Line]) {
    for line in lines {
        let stored = uow.items.find_for_line(line).cloned();
        let is_new = stored.is_none();
        let mut item = stored.unwrap_or_else(|| Item::from_line(uow.next_item_id(), line));
        line.item_id = Some(item.id);
        if is_new || item.fill_category(line) {
            uow.put_item(item);
        }
    }
}

/// Builds the invoice of a draft. If the draft declares the invoice as paid, also returns the first entry of the
/// invoice's ledger.
pub(super) fn new_invoice(
    uow: &mut UnitOfWork,
    draft: &Draft,
    irn: Irn,
    customer: InvoiceCustomer,
) -> (Invoice, Option<Posting>) {
    let identity = InvoiceIdentity {
        id: uow.next_invoice_id(),
        taxpayer_id: uow.id,
        provisional_qr: provisional_qr_code(&irn),
        irn,
        customer,
    };
    draft.clone().into_invoice(identity, uow.now)
}

pub(super) fn put_new_invoice(uow: &mut UnitOfWork, invoice: &Invoice, posting: Option<Posting>) {
    let extra = json!({ "previous_status": null });
    let sequence = uow.emit_about(EventKind::InvoiceCreated, invoice, extra);
    if let Some(posting) = posting {
        uow.writes.postings.push(payments::Model::from_posting(
            invoice, sequence, posting, uow.now,
        ));
    }
    uow.put_invoice(invoice.clone());
}

pub(super) fn determine_irn(draft: &Draft, taxpayer: &Taxpayer) -> Result<Irn, Refusal> {
    match &draft.irn {
        Some(irn) if irn.has_service_id(&taxpayer.service_id) => Ok(irn.clone()),
        Some(_) => Err(Refusal::IrnServiceIdMismatch(Fault::new(
            "irn",
            "irn_service_id_mismatch",
            "The irn must carry this account's authority_service_id.",
        ))),
        None => Irn::for_invoice(&draft.invoice_no, &taxpayer.service_id, draft.invoice_date)
            .map_err(|malformed| {
                Fault::new("invoice_no", "irn_malformed", malformed.to_string()).into()
            }),
    }
}

/// Returns the refusal of a new invoice whose IRN, derived from its number, belongs to an invoice with another number.
/// It is not answered as a duplicate: a caller that reads only the status would believe that its own invoice is stored.
pub(super) fn irn_taken_refusal(irn: &Irn, existing_no: &str) -> Refusal {
    let message = format!(
        "The invoice_no field gives the IRN {irn}, which belongs to the invoice with the number {existing_no}."
    );
    Fault::new("invoice_no", "irn_taken", message).into()
}

/// Refuses a new invoice whose number the authority would refuse, if the account is strict about numbers.
pub(super) fn check_invoice_number(
    taxpayer: &Taxpayer,
    draft: &Draft,
    irn: &Irn,
) -> Result<(), Refusal> {
    if taxpayer.settings.strict_numbers && !is_submittable_number(irn.invoice_no()) {
        return Err(unsubmittable_refusal(draft));
    }
    Ok(())
}

/// Returns the refusal of a draft whose number the authority would refuse, for an account that is strict about numbers.
fn unsubmittable_refusal(draft: &Draft) -> Refusal {
    let rule = FieldRule::with_expected(
        "submittable",
        "must have an invoice number of letters and digits only: the authority takes no other, and this account is strict about numbers",
        "an invoice number of letters and digits only",
    );
    let field = if draft.irn.is_some() {
        "irn"
    } else {
        "invoice_no"
    };
    Fault::field(field, rule).into()
}

/// Finds the existing invoice with the draft's number or IRN. If these belong to two invoices, an IRN that the caller
/// has sent decides, or else the number.
pub(super) fn find_existing_invoice<'a>(
    uow: &'a UnitOfWork,
    draft: &Draft,
    irn: &Irn,
) -> Option<&'a Invoice> {
    let by_number = uow.invoices.find_by_number(&draft.invoice_no);
    let by_irn = uow.find_invoice_by_irn(irn);
    if draft.irn.is_some() {
        by_irn.or(by_number)
    } else {
        by_number.or(by_irn)
    }
}

/// Compares a draft with an existing invoice. An edited invoice is always different, because its first content is gone.
pub(super) fn compare_with_existing(draft: &Draft, existing: &Invoice) -> Duplicate {
    let is_identical = existing.edited_at.is_none() && draft.digest() == existing.content_digest;
    if is_identical {
        Duplicate::Identical
    } else {
        Duplicate::Different
    }
}
