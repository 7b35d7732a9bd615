//! The people that a notice is for, and the text that is stored for them.

use std::fmt;
use std::str::FromStr;

use crate::domain::access::session::{SessionKind, SessionOwner};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

/// The people that a notice is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeScope {
    /// The people of a taxpayer who have the rights that the topic needs.
    Taxpayer(TaxpayerId),
    Person(SessionOwner),
    /// Those who can sign in with the email that the notice is about.
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

/// The text is no scope.
#[derive(Debug, thiserror::Error)]
#[error("not a scope of notices")]
pub struct NoScope;

impl FromStr for NoticeScope {
    type Err = NoScope;

    fn from_str(text: &str) -> Result<Self, NoScope> {
        let parts: Vec<_> = text.split('/').collect();
        let number = |text: &str| text.parse::<i64>().map_err(|_| NoScope);
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
            _ => return Err(NoScope),
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
