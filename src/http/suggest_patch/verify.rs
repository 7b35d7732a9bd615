//! Builds the patch of a refused body: changes it until the form of Validate and the authority accept it.

use authority_client::{Authority, AuthorityFailure};
use serde_json::{Map, Value};

use crate::domain::party::Taxpayer;
use crate::http::explain::authority;
use crate::http::forms::validation;
use crate::http::respond::details::Details;
use crate::http::suggest_patch::patch_builder::{PatchBuilder, PatchContext};
use crate::http::suggest_patch::violation::Violation;

/// The largest number of calls to the authority for one refused body.
const AUTHORITY_CALLS_MAX: usize = 3;

/// An RFC 6902 patch that corrects the received body.
#[derive(Debug)]
pub(crate) struct Patch {
    /// Each operation has the additional member `why`. By RFC 6902, readers ignore members that they do not know.
    operations: Vec<Value>,
    /// True if the patched body is valid; `None` if the authority could not be asked.
    suffices: Option<bool>,
}

impl Patch {
    pub(crate) fn fill_details(self, details: &mut Details) {
        details.patch = Some(self.operations);
        details.patch_suffices = self.suffices;
    }
}

/// Returns the patch. It is unknown whether the patch suffices if the authority gives no verdict.
pub(crate) async fn build_patch(
    authority: &Authority,
    context: PatchContext<'_>,
    taxpayer: &Taxpayer,
    body: &Map<String, Value>,
) -> Patch {
    let catalog = context.catalog;
    let mut builder = PatchBuilder::new(body, context);
    let authority = authority.for_account(taxpayer.into());
    let mut suffices = Some(false);
    for _ in 0..AUTHORITY_CALLS_MAX {
        let is_valid =
            builder.repair_body(
                |body| match validation::read(body, Some(taxpayer), catalog) {
                    Ok(_) => Vec::new(),
                    Err(faults) => faults.iter().map(Violation::from).collect(),
                },
            );
        let form = builder
            .body()
            .and_then(|body| validation::read(body, Some(taxpayer), catalog).ok());
        let Some(form) = form.filter(|_| is_valid) else {
            break;
        };
        let document = form.value.document.as_json();
        let reason = match authority.validate(document).await {
            Ok(()) => {
                suffices = Some(true);
                break;
            }
            Err(
                AuthorityFailure::Refused { message, .. } | AuthorityFailure::NotFound { message },
            ) => message,
            // The authority gave no verdict, so it is unknown whether the patch suffices. The patch is returned anyway.
            Err(_) => {
                suffices = None;
                break;
            }
        };
        let explanations = authority::explain(&reason, form.value.document.as_json());
        let violations: Vec<Violation> = explanations
            .iter()
            .filter_map(Violation::from_explanation)
            .collect();
        if !builder.apply_fixes(&violations) {
            break;
        }
    }
    Patch {
        operations: builder.operations(),
        suffices,
    }
}
