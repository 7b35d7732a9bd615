//! Update Payment Status of the taxpayer surface (spec.md). `status` and `payment_status` are aliases, of
//! which the latter wins; a partial payment needs its amount.

use crate::actors::taxpayer::command::PaymentUpdate;
use crate::domain::codes::PaymentStatus;
use crate::domain::payment::Notice;
use crate::http::forms::field::{Bounds, LONG_TEXT_MAX, TEXT_MAX};
use crate::http::forms::reader::Reader;
use crate::http::forms::unique_no;
use crate::http::forms::update_status::REMARK_MIN;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<PaymentUpdate> {
    let which = unique_no::read(reader);
    let status = status(reader);
    let is_partial = status == Some(PaymentStatus::Partial);
    let bounds = if is_partial { Bounds::POSITIVE } else { Bounds::Any };
    let amount = reader.required_if(is_partial, "amount").amount(bounds);
    let reference = reader.optional("reference").text(TEXT_MAX);
    let remark = reader.required("remark").long_text(REMARK_MIN, LONG_TEXT_MAX);
    let notice = match status? {
        PaymentStatus::Pending => Notice::Pending,
        PaymentStatus::Rejected => Notice::Rejected,
        PaymentStatus::Paid => Notice::Paid,
        PaymentStatus::Partial => Notice::Partial(amount?),
    };
    Some(PaymentUpdate { which: which?, notice, reference, remark: remark? })
}

fn status(reader: &mut Reader<'_>) -> Option<PaymentStatus> {
    let (parse, allowed) = (PaymentStatus::parse, PaymentStatus::allowed);
    let has_alias = reader.has("status") && !reader.has("payment_status");
    let preferred = reader.required_if(!has_alias, "payment_status").word(parse, allowed);
    let alias = reader.optional("status");
    if has_alias { alias.word(parse, allowed) } else { preferred }
}
