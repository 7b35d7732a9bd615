//! Update Invoice Status (spec.md): the status to set, and why.

use crate::actors::taxpayer::command::Which;
use crate::domain::codes::SettableStatus;
use crate::http::forms::field::LONG_TEXT_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::unique_no;

/// The shortest remark, in characters.
pub(crate) const REMARK_MIN: usize = 3;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UpdateStatus {
    pub(crate) which: Which,
    pub(crate) status: SettableStatus,
    pub(crate) remark: String,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<UpdateStatus> {
    let which = unique_no::read(reader);
    let status = reader.required("status").word(SettableStatus::parse, SettableStatus::allowed);
    let remark = reader.required("remark").long_text(REMARK_MIN, LONG_TEXT_MAX);
    Some(UpdateStatus { which: which?, status: status?, remark: remark? })
}
