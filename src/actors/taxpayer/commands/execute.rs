//! Routes each command to the function that decides it.

use crate::actors::taxpayer::command::{CommandReply, TaxpayerCommand};
use crate::actors::taxpayer::commands::{
    account, create, inbound, integration, operator_actions, payment, runs, update, webhook,
};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;

/// Executes one command on the unit of work. `cause` is the id of the command and is stored with each event that the
/// command emits.
pub(crate) fn execute(
    uow: &mut UnitOfWork,
    cause: CommandId,
    command: &TaxpayerCommand,
) -> Result<CommandReply, Refusal> {
    match command {
        TaxpayerCommand::Onboard(onboarding) => account::onboard(uow, cause, onboarding),
        TaxpayerCommand::Create(draft) => create::create(uow, cause, draft),
        TaxpayerCommand::CreateBatch(candidates) => create::create_batch(uow, cause, candidates),
        TaxpayerCommand::Revise { invoice, revision } => update::revise(uow, cause, invoice, revision),
        TaxpayerCommand::SetStatus { invoice, status, remark } => {
            update::set_status(uow, cause, invoice, *status, remark)
        }
        TaxpayerCommand::Pay(update) => payment::pay(uow, cause, update),
        TaxpayerCommand::OpenRun(request) => runs::open(uow, request),
        TaxpayerCommand::RecordSteps(progress) => runs::record(uow, cause, progress),
        TaxpayerCommand::RecheckRun(recheck) => runs::recheck(uow, recheck),
        TaxpayerCommand::LiftRun(recheck) => runs::lift(uow, recheck),
        TaxpayerCommand::ApplyOperatorAction(request) => operator_actions::apply(uow, cause, request),
        TaxpayerCommand::RecordReceipt { irn } => Ok(inbound::record_receipt(uow, cause, irn)),
        TaxpayerCommand::RecordTransit { irn, is_delivered } => {
            Ok(inbound::record_transit(uow, cause, irn, *is_delivered))
        }
        TaxpayerCommand::ReceiveSupplierInvoice(document) => {
            inbound::receive_supplier_invoice(uow, cause, document)
        }
        TaxpayerCommand::AcknowledgeSupplierInvoice { irn } => {
            inbound::acknowledge_supplier_invoice(uow, cause, irn)
        }
        TaxpayerCommand::NotifyOutage(notice) => Ok(inbound::notify_outage(uow, cause, notice)),
        TaxpayerCommand::ChangeProfile(change, by) => account::change_profile(uow, cause, change, *by),
        TaxpayerCommand::SetSubscription(to, by) => account::set_subscription(uow, *to, *by),
        TaxpayerCommand::RecordVerification(result) => account::record_verification(uow, cause, result),
        TaxpayerCommand::RotateKey { key, by } => account::rotate_key(uow, cause, key, *by),
        TaxpayerCommand::RevokeKey { id, by } => account::revoke_key(uow, id, *by),
        TaxpayerCommand::SetWebhook(change) => webhook::set(uow, cause, change),
        TaxpayerCommand::RotateSecret { secret, by } => webhook::rotate_secret(uow, cause, secret, *by),
        TaxpayerCommand::DisableEndpoint { as_of, reason } => webhook::disable(uow, *as_of, reason),
        TaxpayerCommand::EnableEndpoint { replay } => webhook::enable(uow, *replay),
        TaxpayerCommand::Replay(request) => webhook::replay(uow, request),
        TaxpayerCommand::CancelReplay { id } => webhook::cancel_replay(uow, *id),
        TaxpayerCommand::SetIntegration(change) => integration::set(uow, cause, change),
        TaxpayerCommand::StoreRefreshToken(token) => Ok(integration::store_refresh_token(uow, token)),
    }
}
