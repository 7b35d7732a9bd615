//! Ids in paths and bodies. A malformed id gives 404 like an unknown id, never 400.

use uuid::Uuid;

use crate::domain::events::delivery::Delivery;
use crate::domain::import::record::{Import, ImportState};
use crate::domain::invoice::batch::Batch;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::{ContactId, IntegratorId, InvoiceId, TaxpayerId, parse_id};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::Run;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::invoices::{batches, imports};
use crate::store::runs;
use crate::store::webhooks::{self, EndpointWithStreak, delivery_log};

pub(crate) fn parse_invoice_id(text: &str) -> Result<InvoiceId, ApiError> {
    parse_id(text)
        .map(InvoiceId)
        .ok_or_else(ApiError::invoice_not_found)
}

/// Fails with "invoice not found" if the reference is an id of this service (`PortalId`) that is malformed. Returns any
/// other reference unchanged.
pub(crate) fn check_invoice_ref(reference: InvoiceRef) -> Result<InvoiceRef, ApiError> {
    let is_well_formed =
        reference.kind != UniqueNoType::PortalId || parse_id(&reference.text).is_some();
    is_well_formed
        .then_some(reference)
        .ok_or_else(ApiError::invoice_not_found)
}

pub(crate) fn parse_irn(text: &str) -> Result<Irn, ApiError> {
    Irn::parse(text).map_err(|_| ApiError::invoice_not_found())
}

/// Returns the taxpayer's batch with the number in the path. The batch of a large imported file has no record; the
/// error then names the import.
pub(crate) async fn find_batch(
    state: &ApiState,
    taxpayer: TaxpayerId,
    batch_no: &str,
) -> Result<Batch, ApiError> {
    let not_found = || ApiError::new(ErrorCode::BatchNotFound, "Batch not found");
    if batch_no.chars().any(char::is_control) {
        return Err(not_found());
    }
    if let Some(batch) = batches::find_owned_by_number(&state.store, taxpayer, batch_no).await? {
        return Ok(batch);
    }
    let import = imports::find_owned_by_batch(&state.store, taxpayer, batch_no).await?;
    Err(import.map_or_else(not_found, |import| {
        ApiError::new(ErrorCode::BatchNotFound, imported_batch_message(&import))
    }))
}

/// Returns the message for the batch of this import, which has no record.
fn imported_batch_message(import: &Import) -> String {
    let import_no = &import.import_no;
    if import.state() == ImportState::Running {
        format!(
            "This batch is being imported, and has no record of its own: {} of {} invoices are done. The import {import_no} tells how far it is.",
            import.counts.total(),
            import.documents,
        )
    } else {
        format!(
            "This batch was imported from a large file, and has no record of its own. The import {import_no} tells what became of it."
        )
    }
}

/// Returns the taxpayer with the id in the path. Taxpayers of other integrators are not found.
pub(crate) async fn find_taxpayer(
    state: &ApiState,
    integrator: IntegratorId,
    text: &str,
) -> Result<Taxpayer, ApiError> {
    let id = parse_id(text)
        .map(TaxpayerId)
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let taxpayer = taxpayers::find_owned_by_id(&state.store, integrator, id).await?;
    taxpayer.ok_or_else(ApiError::taxpayer_not_found)
}

/// Returns the id in the path if a taxpayer with this id exists. The taxpayer may belong to any integrator.
pub(crate) async fn existing_taxpayer_id(
    state: &ApiState,
    text: &str,
) -> Result<TaxpayerId, ApiError> {
    let id = parse_id(text)
        .map(TaxpayerId)
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let taxpayer = taxpayers::find_by_id(state.store.reader(), id).await?;
    taxpayer
        .map(|taxpayer| taxpayer.id)
        .ok_or_else(ApiError::taxpayer_not_found)
}

/// Returns the endpoint with the ids in the path: the id of its taxpayer, then its own id. The taxpayer must belong to
/// this integrator.
pub(crate) async fn find_endpoint(
    state: &ApiState,
    integrator: IntegratorId,
    ids: &(String, String),
) -> Result<EndpointWithStreak, ApiError> {
    let taxpayer = find_taxpayer(state, integrator, &ids.0).await?;
    let endpoint = webhooks::find_owned_by_name(state.store.reader(), taxpayer.id, &ids.1).await?;
    Ok(endpoint.ok_or(Refusal::EndpointNotFound)?)
}

/// Returns the delivery with the ids in the path: the id of its taxpayer, then its own id. The taxpayer must belong to
/// this integrator.
pub(crate) async fn find_delivery(
    state: &ApiState,
    integrator: IntegratorId,
    ids: &(String, String),
) -> Result<Delivery, ApiError> {
    let taxpayer = find_taxpayer(state, integrator, &ids.0).await?;
    let id = parse_uuid(&ids.1).ok_or(Refusal::DeliveryNotFound)?;
    let delivery = delivery_log::find_owned_by_id(&state.store, taxpayer.id, id).await?;
    Ok(delivery.ok_or(Refusal::DeliveryNotFound)?)
}

/// Parses the id of a contact person in a path. A text that is no id fails in the same way as an unknown person.
pub(crate) fn parse_contact_id(text: &str) -> Result<ContactId, ApiError> {
    parse_id(text)
        .map(ContactId)
        .ok_or_else(ApiError::contact_not_found)
}

/// Parses a UUID that is written with hyphens. Any other form gives `None`.
pub(crate) fn parse_uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 36)
}

/// Returns the run with the id in the path. The run may belong to any taxpayer.
pub(crate) async fn find_run(state: &ApiState, text: &str) -> Result<Run, ApiError> {
    let not_found = || ApiError::new(ErrorCode::RunNotFound, "Pipeline run not found");
    let id = parse_uuid(text).ok_or_else(not_found)?;
    runs::find_by_id(&state.store, id)
        .await?
        .ok_or_else(not_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_invoice_id_is_not_found() {
        let check_portal_id = |text: &str| {
            check_invoice_ref(InvoiceRef {
                kind: UniqueNoType::PortalId,
                text: text.to_owned(),
            })
        };
        for text in [
            "",
            "abc",
            "1.5",
            "-1",
            "+1",
            " 1",
            "007",
            "0",
            "99999999999999999999",
            "1e3",
            "0x1",
        ] {
            assert_eq!(
                parse_invoice_id(text).unwrap_err().status.as_u16(),
                404,
                "{text:?}"
            );
            assert_eq!(
                check_portal_id(text).unwrap_err().status.as_u16(),
                404,
                "{text:?}"
            );
        }
        assert_eq!(parse_invoice_id("42").unwrap(), InvoiceId(42));
        assert_eq!(check_portal_id("42").unwrap().text, "42");
        let invoice_number = InvoiceRef {
            kind: UniqueNoType::InternalInvoiceNo,
            text: "007".to_owned(),
        };
        assert_eq!(
            check_invoice_ref(invoice_number.clone()).unwrap(),
            invoice_number
        );
    }
}
