//! Moves the codes of an invoice line to the right fields. A code with a decimal point, such as 8471.30, is a code of
//! goods; a code of four digits, such as 6201, is a code of services. A line with both kinds stays unchanged.

use serde_json::Value;

use crate::domain::kernel::fault::json_pointer;
use crate::http::suggest_patch::patch_op::{PatchAction, PatchOperation};
use crate::http::suggest_patch::violation::Violation;

const GOODS_FIELDS: [&str; 2] = ["hsn_code", "product_category"];
const SERVICE_FIELDS: [&str; 2] = ["isic_code", "service_category"];

/// The kind of sale of a line. The format of the line's codes shows the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SoldKind {
    Goods,
    Service,
}

/// Returns the operations that move the codes of a line to the fields for goods or to the fields for services.
pub(super) fn find_fixes(body: &Value, violation: &Violation) -> Vec<PatchOperation> {
    let Some((line, name)) = violation.path.rsplit_once('.') else {
        return Vec::new();
    };
    let is_code = GOODS_FIELDS.contains(&name) || SERVICE_FIELDS.contains(&name);
    if violation.rule != "required" || !is_code {
        return Vec::new();
    }
    let line = json_pointer(line);
    body.pointer(&line)
        .and_then(|fields| line_fixes(fields, &line))
        .unwrap_or_default()
}

fn line_fixes(line_fields: &Value, line_pointer: &str) -> Option<Vec<PatchOperation>> {
    let text = |name: &str| {
        line_fields
            .get(name)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let codes: Vec<&str> = GOODS_FIELDS
        .iter()
        .chain(&SERVICE_FIELDS)
        .filter_map(|name| text(name))
        .collect();
    let kind = code_kind(codes.first()?)?;
    if !codes.iter().all(|code| code_kind(code) == Some(kind)) {
        return None;
    }
    let (right, other, kind_words) = match kind {
        SoldKind::Goods => (
            GOODS_FIELDS,
            SERVICE_FIELDS,
            "goods, which are written 9999.99",
        ),
        SoldKind::Service => (
            SERVICE_FIELDS,
            GOODS_FIELDS,
            "a service, which is written 9999",
        ),
    };
    let mut fixes = Vec::new();
    for (right, other) in right.iter().zip(other) {
        let Some(misplaced) = text(other) else {
            continue;
        };
        let from = format!("{line_pointer}/{other}");
        match text(right) {
            None => fixes.push(PatchOperation {
                pointer: format!("{line_pointer}/{right}"),
                change: PatchAction::MoveFrom(from),
                why: format!("every code of this line is that of {kind_words}"),
            }),
            Some(existing) if existing == misplaced => fixes.push(PatchOperation {
                pointer: from,
                change: PatchAction::Remove,
                why: format!(
                    "{right} says the same, and every code of this line is that of {kind_words}"
                ),
            }),
            Some(_) => return None,
        }
    }
    Some(fixes)
}

fn code_kind(code: &str) -> Option<SoldKind> {
    match code.split_once('.') {
        Some((heading, rest)) => {
            (are_digits(heading, 4) && are_digits(rest, 2)).then_some(SoldKind::Goods)
        }
        None => are_digits(code, 4).then_some(SoldKind::Service),
    }
}

fn are_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}
