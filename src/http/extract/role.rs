//! The least operator role that a handler requires, on /ops and on /console. The types of the handler's parameters
//! define the role. The API document is made from the same types, so it always shows the role that is checked.

use actix_web::{HttpRequest, web};

use crate::domain::access::caller::{Caller, IntegratorCaller, TaxpayerCaller};
use crate::domain::access::session::OperatorRole;
use crate::http::extract::acting_taxpayer::AppCaller;
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::query::Query;
use crate::http::middleware::client_address::ClientAddress;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The least operator role that a parameter of a handler requires. `None` for a parameter that is no right of an
/// operator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which role of an operator it needs",
    note = "`impl NeedsRole for` it; the default is none"
)]
pub(crate) trait NeedsRole {
    const LEAST_ROLE: Option<OperatorRole> = None;
}

/// Returns the higher of two roles. `None` is lower than any role.
const fn higher_role(
    left: Option<OperatorRole>,
    right: Option<OperatorRole>,
) -> Option<OperatorRole> {
    match (left, right) {
        (Some(first), Some(second)) if (first as u8) < (second as u8) => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

/// Implements `NeedsRole` for tuples: a tuple requires the highest role of its parts.
macro_rules! impl_for_tuples {
    ($(($($part:ident)*))+) => {$(
        impl<$($part: NeedsRole),*> NeedsRole for ($($part,)*) {
            const LEAST_ROLE: Option<OperatorRole> = {
                let least_role = None;
                $(let least_role = higher_role(least_role, $part::LEAST_ROLE);)*
                least_role
            };
        }
    )+};
}

impl_for_tuples! {
    ()
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
}

/// Implements `NeedsRole` for parameters that require no role.
macro_rules! impl_without_role {
    ($($part:ty),+ $(,)?) => {$(impl NeedsRole for $part {})+};
}

impl_without_role! {
    AppCaller, Body, Caller, ClientAddress, HttpRequest, IntegratorCaller, Prefer, Query, TaxpayerCaller,
}

impl<T> NeedsRole for Option<T> {}

impl<T: ?Sized> NeedsRole for web::Data<T> {}

impl<T> NeedsRole for web::Path<T> {}

impl<T> NeedsRole for web::Query<T> {}

/// A handler that takes a right as a `Result` also serves people without the right, so it requires no role.
impl<T, E> NeedsRole for Result<T, E> {}

/// Returns the message for an operator whose role is too low.
pub(crate) fn insufficient_role_message(least_role: OperatorRole) -> &'static str {
    match least_role {
        OperatorRole::Admin => "Only an operator with the role admin may do this.",
        OperatorRole::Operator | OperatorRole::Viewer => {
            "Your role may look, not act. An operator with the role operator or admin may do this."
        }
    }
}

/// Returns the error for a key of an operator whose role is too low.
pub(crate) fn insufficient_role_error(least_role: OperatorRole) -> ApiError {
    ApiError::new(
        ErrorCode::RoleInsufficient,
        insufficient_role_message(least_role),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::caller::{OpsAdmin, OpsOperator, OpsViewer};

    fn least_role<Args: NeedsRole>(_: impl Fn(Args)) -> Option<OperatorRole> {
        Args::LEAST_ROLE
    }

    #[test]
    fn a_handler_needs_the_highest_role_of_its_parameters() {
        assert_eq!(least_role(|(): ()| ()), None);
        assert_eq!(least_role(|_: (Query, web::Path<String>)| ()), None);
        assert_eq!(
            least_role(|_: (Query, OpsViewer)| ()),
            Some(OperatorRole::Viewer)
        );
        assert_eq!(
            least_role(|_: (OpsOperator, Query)| ()),
            Some(OperatorRole::Operator)
        );
        assert_eq!(
            least_role(|_: (OpsViewer, OpsAdmin, OpsOperator)| ()),
            Some(OperatorRole::Admin)
        );
    }
}
