//! Which decision a command leads to.

use crate::actors::taxpayer::command::{Command, Reply};
use crate::actors::taxpayer::decide::{
    account, batch, create, integration, invoice, operate, outage, pipeline, reconsider, revise, supplier,
    transit, verification, webhook,
};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;

/// Decides one command against the desk.
pub(crate) fn decide(desk: &mut Desk, cause: CommandId, command: &Command) -> Result<Reply, Refusal> {
    match command {
        Command::Onboard(onboarding) => account::onboard(desk, cause, onboarding),
        Command::Create(draft) => create::create(desk, cause, draft),
        Command::Revise { which, revision } => revise::revise(desk, cause, which, revision),
        Command::CreateBatch(candidates) => batch::create_batch(desk, cause, candidates),
        Command::SetStatus { which, status, remark } => {
            invoice::set_status(desk, cause, which, *status, remark)
        }
        Command::Pay(update) => invoice::pay(desk, cause, update),
        Command::OpenRun(request) => pipeline::open(desk, request),
        Command::RecordStep(outcome) => pipeline::record(desk, cause, outcome),
        Command::RecordReceipt { irn } => Ok(transit::record_receipt(desk, cause, irn)),
        Command::RecordTransit { irn, is_delivered } => Ok(transit::record(desk, cause, irn, *is_delivered)),
        Command::ReceiveSupplierInvoice(sent) => supplier::receive(desk, cause, sent),
        Command::AcknowledgeSupplierInvoice { irn } => supplier::acknowledge(desk, cause, irn),
        Command::ChangeProfile(change, by) => account::change_profile(desk, cause, change, *by),
        Command::SetSubscription(to, by) => account::set_subscription(desk, *to, *by),
        Command::RecordVerification(found) => verification::record(desk, cause, found),
        Command::SetWebhook(change) => account::set_webhook(desk, cause, change),
        Command::SetIntegration(order) => integration::set(desk, cause, order),
        Command::KeepRefreshToken(token) => Ok(integration::keep_refresh_token(desk, token)),
        Command::RotateSecret { secret, by } => account::rotate_secret(desk, cause, secret, *by),
        Command::RotateKey { key, by } => account::rotate_key(desk, cause, key, *by),
        Command::DisableEndpoint { as_of, reason } => account::disable_endpoint(desk, *as_of, reason),
        Command::EnableEndpoint { replay } => webhook::enable(desk, *replay),
        Command::Replay(order) => webhook::replay(desk, order),
        Command::CancelReplay { id } => webhook::cancel_replay(desk, *id),
        Command::TellOutage(notice) => Ok(outage::tell(desk, cause, notice)),
        Command::MoveRun(order) => operate::move_run(desk, cause, order),
        Command::Reconsider(order) => reconsider::reconsider(desk, order),
    }
}
