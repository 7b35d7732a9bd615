//! The recipients of a notice, and the text as which they are stored.

use std::fmt;
use std::str::FromStr;

use crate::domain::access::session::{SessionKind, SessionOwner};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

/// The recipients of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeScope {
    /// Those contact persons of a taxpayer who have a role that may get mails about the topic.
    Taxpayer(TaxpayerId),
    Person(SessionOwner),
    /// The people who can sign in with the email address that the notice is about.
    SignIn,
}

impl fmt::Display for NoticeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taxpayer(id) => write!(f, "taxpayer/{id}"),
            Self::Person(SessionOwner::Contact { taxpayer, id }) => {
                write!(f, "contact/{taxpayer}/{id}")
            }
            Self::SignIn => f.write_str("sign-in"),
            Self::Person(owner) => write!(f, "{}/{}", owner.kind(), owner.id()),
        }
    }
}

/// The error for a text that is not a scope.
#[derive(Debug, thiserror::Error)]
#[error("not a scope of notices")]
pub struct InvalidScope;

impl FromStr for NoticeScope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let parts: Vec<_> = text.split('/').collect();
        let number = |text: &str| text.parse::<i64>().map_err(|_| InvalidScope);
        let owner = match parts[..] {
            ["sign-in"] => return Ok(Self::SignIn),
            ["taxpayer", id] => return Ok(Self::Taxpayer(TaxpayerId(number(id)?))),
            ["contact", taxpayer, id] => SessionOwner::Contact {
                taxpayer: TaxpayerId(number(taxpayer)?),
                id: ContactId(number(id)?),
            },
            [kind, id] if kind == SessionKind::Integrator.as_str() => {
                SessionOwner::Integrator(IntegratorId(number(id)?))
            }
            [kind, id] if kind == SessionKind::Operator.as_str() => {
                SessionOwner::Operator(number(id)?)
            }
            _ => return Err(InvalidScope),
        };
        Ok(Self::Person(owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_comes_back_from_its_text() {
        for text in [
            "taxpayer/7",
            "contact/7/9",
            "integrator/3",
            "operator/1",
            "sign-in",
        ] {
            assert_eq!(text.parse::<NoticeScope>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "taxpayer",
            "taxpayer/x",
            "contact/7",
            "robot/1",
            "operator/1/2",
        ] {
            assert!(text.parse::<NoticeScope>().is_err(), "{text}");
        }
    }
}
