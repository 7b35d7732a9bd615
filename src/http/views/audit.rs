//! An entry of what operators did: who, when, what, why.

use std::collections::HashMap;

use serde::Serialize;

use crate::domain::audit::{AuditAction, AuditEntry};
use crate::domain::ids::TaxpayerId;
use crate::domain::object::precise;

#[derive(Debug, Serialize)]
pub(crate) struct AuditView<'a> {
    id: uuid::Uuid,
    at: String,
    operator_id: i64,
    operator: Option<&'a str>,
    action: AuditAction,
    taxpayer_id: Option<TaxpayerId>,
    subject: &'a str,
    from_state: Option<&'a str>,
    to_state: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> AuditView<'a> {
    pub(crate) fn new(entry: &'a AuditEntry, operators: &'a HashMap<i64, String>) -> Self {
        Self {
            id: entry.id,
            at: precise(entry.at),
            operator_id: entry.operator_id,
            operator: operators.get(&entry.operator_id).map(String::as_str),
            action: entry.action,
            taxpayer_id: entry.taxpayer_id,
            subject: &entry.subject,
            from_state: entry.from_state.as_deref(),
            to_state: entry.to_state.as_deref(),
            reason: entry.reason.as_deref(),
        }
    }
}
