//! Maps a method and a path to an operation and its subject.
//!
//! The caller has already removed `/api` or `/api/v1` from the path. A known path with a wrong method counts as an
//! unknown path.

use serde::{Deserialize, Serialize};

/// The operations of the authority. The control interface names them in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Root,
    IrnValidate,
    Validate,
    Sign,
    Confirm,
    Download,
    Update,
    Search,
    Health,
    Lookup,
    Transmit,
    Acknowledge,
    Pull,
    Report,
    Entity,
    Resources,
}

impl Operation {
    pub(crate) const COUNT: usize = 16;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::IrnValidate => "irn_validate",
            Self::Validate => "validate",
            Self::Sign => "sign",
            Self::Confirm => "confirm",
            Self::Download => "download",
            Self::Update => "update",
            Self::Search => "search",
            Self::Health => "health",
            Self::Lookup => "lookup",
            Self::Transmit => "transmit",
            Self::Acknowledge => "acknowledge",
            Self::Pull => "pull",
            Self::Report => "report",
            Self::Entity => "entity",
            Self::Resources => "resources",
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Returns true for the operations that need no API key: the root path, the self health check and the reference
    /// lists.
    pub(crate) fn is_public(self) -> bool {
        matches!(self, Self::Root | Self::Health | Self::Resources)
    }

    pub(crate) fn success_code(self) -> u16 {
        if self == Self::Sign { 201 } else { 200 }
    }
}

/// The subject of a call, named by the last part of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The path names nothing; the body may contain an IRN.
    None,
    Irn(String),
    Tin(String),
    Business(String),
    Entity(String),
    List(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject,
}

impl Route {
    pub(crate) fn find(method: &str, path: &str) -> Option<Self> {
        let segments: Vec<&str> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let (operation, subject) = match (method, &segments[..]) {
            ("GET", []) => (Operation::Root, Subject::None),
            ("POST", ["vat", "postpayment"]) => (Operation::Report, Subject::None),
            ("GET", ["entity", id]) => (Operation::Entity, Subject::Entity((*id).to_owned())),
            (_, ["invoice", "transmit", rest @ ..]) => match_transmission_path(method, rest)?,
            (_, ["invoice", rest @ ..]) => match_invoice_path(method, rest)?,
            _ => return None,
        };
        Some(Self { operation, subject })
    }
}

fn match_invoice_path(method: &str, rest: &[&str]) -> Option<(Operation, Subject)> {
    Some(match (method, rest) {
        ("POST", ["irn", "validate"]) => (Operation::IrnValidate, Subject::None),
        ("POST", ["validate"]) => (Operation::Validate, Subject::None),
        ("POST", ["sign"]) => (Operation::Sign, Subject::None),
        ("GET", ["confirm", of]) => (Operation::Confirm, invoice_subject(of)),
        ("GET", ["download", of]) => (Operation::Download, invoice_subject(of)),
        ("PATCH", ["update", of]) => (Operation::Update, invoice_subject(of)),
        ("GET", ["resources", list]) => (Operation::Resources, Subject::List((*list).to_owned())),
        ("GET", [business]) => (Operation::Search, Subject::Business((*business).to_owned())),
        _ => return None,
    })
}

fn invoice_subject(irn: &str) -> Subject {
    Subject::Irn(irn.to_owned())
}

fn match_transmission_path(method: &str, rest: &[&str]) -> Option<(Operation, Subject)> {
    Some(match (method, rest) {
        ("GET", ["self-health-check"]) => (Operation::Health, Subject::None),
        ("GET", ["pull"]) => (Operation::Pull, Subject::None),
        ("GET", ["lookup", "tin", tin]) => (Operation::Lookup, Subject::Tin((*tin).to_owned())),
        ("GET", ["lookup", of]) => (Operation::Lookup, invoice_subject(of)),
        ("POST", [of]) => (Operation::Transmit, invoice_subject(of)),
        ("PATCH", [of]) => (Operation::Acknowledge, invoice_subject(of)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_word_wins_over_a_business_and_a_lookup_over_a_transmission() {
        let operation = |method, path| Route::find(method, path).map(|route| route.operation);
        assert_eq!(
            operation("GET", "/invoice/transmit/pull"),
            Some(Operation::Pull)
        );
        assert_eq!(
            operation("GET", "/invoice/transmit/lookup/tin/1"),
            Some(Operation::Lookup)
        );
        assert_eq!(
            operation("PATCH", "/invoice/transmit/A"),
            Some(Operation::Acknowledge)
        );
        assert_eq!(
            operation("GET", "/invoice/some-business"),
            Some(Operation::Search)
        );
        assert_eq!(operation("GET", "/invoice/sign/x"), None);
        assert_eq!(operation("DELETE", "/invoice/sign"), None);
    }
}
