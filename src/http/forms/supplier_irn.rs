//! Get Supplier Invoice and Acknowledge Supplier Invoice (spec.md): the body names the invoice in the inbox by its IRN.

use crate::domain::invoice::irn::Irn;
use crate::http::forms::reader::Reader;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Irn> {
    reader.required("supplier_irn").irn()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn an_irn_is_required_and_has_its_form() {
        let body = json!({ "supplier_irn": "SUP1-5A0D0001-20260115" });
        let cases = [
            ("/supplier_irn", None, "supplier_irn: required"),
            ("/supplier_irn", Some(json!("")), "supplier_irn: required"),
            ("/supplier_irn", Some(json!(null)), "supplier_irn: required"),
            ("/supplier_irn", Some(json!(7)), "supplier_irn: type"),
            ("/supplier_irn", Some(json!({})), "supplier_irn: type"),
            (
                "/supplier_irn",
                Some(json!("SUP1")),
                "supplier_irn: irn_malformed",
            ),
            ("/supplier_irn", Some(json!([])), "supplier_irn: type"),
        ];
        check(&body, &cases, read);
    }
}
