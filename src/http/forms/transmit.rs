//! Transmit (spec.md): the body names the invoice to transmit by its IRN.

use crate::domain::invoice::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::forms::ownership;
use crate::http::forms::reader::Reader;

/// Reads the IRN, which must belong to the acting taxpayer.
pub(crate) fn read(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    ownership::read_optional_business_id(reader, taxpayer);
    ownership::read_irn(reader, taxpayer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{check_refused, check_required, texts};

    #[test]
    fn an_irn_is_required_and_has_its_format() {
        let body = json!({ "irn": "INV001-94AD90FB-20261121" });
        check_required(&body, &["/irn"], |reader| read(reader, None));
        let cases = [
            ("/irn", "type", vec![json!(7)]),
            ("/irn", "irn_malformed", texts(&["not an irn"])),
            ("/business_id", "uuid", texts(&["odd"])),
        ];
        check_refused(&body, &cases, |reader| read(reader, None));
    }
}
