//! The response of Validate (docs/contract.md, "Answers and messages").

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::irn::Irn;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Validated)]
pub(crate) struct ValidationResult<'a> {
    ok: bool,
    irn: &'a str,
    warnings: &'a [String],
}

impl<'a> ValidationResult<'a> {
    pub(crate) fn new(irn: &'a Irn, warnings: &'a [String]) -> Self {
        Self {
            ok: true,
            irn: irn.as_str(),
            warnings,
        }
    }
}
