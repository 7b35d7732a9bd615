//! The forms that give an operator or a contact person of a taxpayer another role.

use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

/// The new role of an operator. The audit log stores the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RoleChange {
    pub(crate) role: OperatorRole,
    pub(crate) reason: Option<String>,
}

pub(crate) fn read_operator_role(reader: &mut Reader<'_>) -> Option<RoleChange> {
    let role = reader
        .required("role")
        .word(OperatorRole::parse, OperatorRole::allowed_words);
    let reason = reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX);
    Some(RoleChange {
        role: role?,
        reason,
    })
}

pub(crate) fn read_contact_role(reader: &mut Reader<'_>) -> Option<ContactRole> {
    reader
        .required("role")
        .word(ContactRole::parse, ContactRole::allowed_words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn the_role_is_one_of_three() {
        let cases = [
            ("/role", Some(json!("admin")), ""),
            ("/role", Some(json!("owner")), "role: one_of"),
            ("/role", None, "role: required"),
            ("/reason", Some(json!(7)), "reason: type"),
        ];
        check(
            &json!({ "role": "viewer", "reason": "new duties" }),
            &cases,
            read_operator_role,
        );
    }
}
