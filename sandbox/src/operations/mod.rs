//! What the authority does for each call it accepts.
//!
//! An operation takes the call and the books and answers data or a refusal. It never waits: what takes time (notices)
//! is queued.

mod catalog;
mod download;
mod irn;
mod payment;
mod report;
mod search;
mod sign;
mod transmission;

use serde_json::{Value, json};

use crate::{books::Invoice, gate::Call, reply::Refusal, route::Operation, state::State};

type Answer = Result<Value, Refusal>;

pub(crate) fn perform(call: &Call, state: &State) -> Answer {
    match call.operation {
        Operation::Root => Ok(json!({ "healthy": true })),
        Operation::IrnValidate => irn::validate(call, state),
        Operation::Validate => sign::validate(call, state),
        Operation::Sign => sign::sign(call, state),
        Operation::Confirm => sign::confirm(call, state),
        Operation::Download => download::download(call, state),
        Operation::Update => payment::update(call, state),
        Operation::Search => search::search(call, state),
        Operation::Health => Ok(json!({ "ok": !call.unhealthy })),
        Operation::Lookup => transmission::lookup(call, state),
        Operation::Transmit => transmission::transmit(call, state),
        Operation::Acknowledge => transmission::acknowledge(call, state),
        Operation::Pull => search::pull(call, state),
        Operation::Report => report::report(call, state),
        Operation::Entity => catalog::entity(call, state),
        Operation::Resources => catalog::list(call),
    }
}

pub(crate) use sign::commit;

fn ok() -> Value {
    json!({ "ok": true })
}

fn body(call: &Call) -> Result<&Value, Refusal> {
    if call.body.is_object() {
        Ok(&call.body)
    } else {
        Err(Refusal::new(400, "unable to parse the request body"))
    }
}

/// Works on the signed invoice the path names, or says 404.
fn with_invoice<T>(
    call: &Call,
    state: &State,
    work: impl FnOnce(&mut Invoice) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let mut ledger = state.books.open();
    let invoice = ledger.invoice_mut(call.irn().unwrap_or_default());
    work(invoice.ok_or_else(|| Refusal::new(404, "invoice not found"))?)
}
