//! Get Supplier Invoice and Acknowledge Supplier Invoice (spec.md): the body names the invoice in the inbox by its IRN.

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::refusal::Refusal;
use crate::http::forms::field::IRN_CHARS_MAX;
use crate::http::forms::reader::Reader;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<String> {
    reader.required("supplier_irn").text(IRN_CHARS_MAX)
}

/// Returns the IRN that was sent. A text that is no IRN gets the same refusal as the IRN of another buyer's invoice: in
/// both cases, no such invoice was announced to the caller.
pub(crate) fn parse(text: &str) -> Result<Irn, Refusal> {
    Irn::parse(text).map_err(|_| Refusal::NotAddressedToCaller)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn a_text_is_required() {
        let body = json!({ "supplier_irn": "SUP1-5A0D0001-20260115" });
        let cases = [
            ("/supplier_irn", None, "supplier_irn: required"),
            ("/supplier_irn", Some(json!("")), "supplier_irn: required"),
            ("/supplier_irn", Some(json!(null)), "supplier_irn: required"),
            ("/supplier_irn", Some(json!(7)), "supplier_irn: type"),
            ("/supplier_irn", Some(json!({})), "supplier_irn: type"),
            ("/supplier_irn", Some(json!("SUP1")), ""),
            ("/supplier_irn", Some(json!([])), "supplier_irn: type"),
        ];
        check(&body, &cases, read);
    }
}
