//! Update Payment Status of the access point surface (spec.md): a status of its own set, and why.

use crate::domain::codes::RelayedPaymentStatus;
use crate::domain::payment::PaymentOrder;
use crate::http::forms::field::TEXT_MAX;
use crate::http::forms::reader::Reader;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<PaymentOrder> {
    let (parse, allowed) = (RelayedPaymentStatus::parse, RelayedPaymentStatus::allowed);
    let payment_status = reader.required("payment_status").word(parse, allowed);
    let remark = reader.optional("remark").long_text(0, TEXT_MAX);
    Some(PaymentOrder { payment_status: payment_status?, remark })
}
