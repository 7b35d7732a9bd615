//! The frame of each page: its title, the navigation, the person who is signed in, and a notice about the last action.

use crate::console::accounts;
use crate::console::assets::{ASSET_ADDRESSES, AssetAddresses};
use crate::console::operators;
use crate::console::operators::incident_lines::Headline;
use crate::console::session::accounts::{AccountLabel, AccountSession, SignedInIntegrator};
use crate::console::session::operators::OperatorSession;
use crate::domain::access::session::{ContactRole, OperatorRole, Person, SessionOwner};

/// The title of the operators' first page.
pub(crate) const OVERVIEW_TITLE: &str = "Overview";

/// An entry of the navigation.
#[derive(Debug)]
pub(crate) struct NavigationEntry {
    pub(crate) label: &'static str,
    pub(crate) path: String,
}

/// A search form in the top bar.
#[derive(Debug)]
pub(crate) struct SearchForm {
    /// The address that the form sends to.
    pub(crate) action: &'static str,
    pub(crate) label: &'static str,
    pub(crate) placeholder: &'static str,
}

const OPERATORS_SEARCH: SearchForm = SearchForm {
    action: "/console/search",
    label: "Search by IRN, invoice number, TIN, taxpayer, run or event",
    placeholder: "IRN, invoice, TIN, run, event …",
};
/// The form that leads an integrator to one of its taxpayers, from any page.
const SWITCHER: SearchForm = SearchForm {
    action: "/dashboard/taxpayers/open",
    label: "Switch to a taxpayer by name, TIN or email",
    placeholder: "Switch to: name, TIN, email …",
};

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// The entry of the navigation that the page belongs to.
    pub(crate) section: String,
    pub(crate) assets: &'static AssetAddresses,
    pub(crate) navigation: Vec<NavigationEntry>,
    /// The account whose pages these are; `None` on pages that belong to no account.
    pub(crate) account: Option<AccountLabel>,
    /// The name or email of the person who is signed in; empty if the page shows nobody, as the sign-in does.
    pub(crate) person: String,
    /// The notice of the action that led here; `None` if there is none. It is shown once.
    pub(crate) notice: Option<String>,
    /// The gravest incident in one line; `None` if nothing needs an operator. Also `None` on the overview, which shows
    /// all incidents.
    pub(crate) incident: Option<Headline>,
    /// The name of the replica that made the page; empty on pages that are not for operators.
    pub(crate) replica: String,
    pub(crate) csrf: String,
    /// True if the person has the right to act, for example to change invoices, or to pause and retry runs.
    pub(crate) can_act: bool,
    /// True if the person has the right to change the account itself: its keys, webhooks and people.
    pub(crate) can_manage: bool,
    /// The search form in the top bar; `None` if the page has none.
    pub(crate) search: Option<&'static SearchForm>,
}

impl Frame {
    /// Returns the frame of a page under `/console`.
    pub(crate) fn for_operator(session: &OperatorSession, title: &str) -> Self {
        Self {
            navigation: operators::navigation::navigation(),
            person: session.email.clone(),
            notice: session.notice.clone(),
            incident: session.headline.clone().filter(|_| title != OVERVIEW_TITLE),
            replica: session.replica.clone(),
            csrf: session.csrf.clone(),
            can_act: session.role >= OperatorRole::Operator,
            can_manage: session.role >= OperatorRole::Admin,
            search: Some(&OPERATORS_SEARCH),
            ..Self::for_visitor(title)
        }
    }

    /// Returns the frame of a page under `/dashboard/{taxpayer}`.
    pub(crate) fn for_account(session: &AccountSession, title: &str) -> Self {
        Self {
            account: Some(session.account.clone()),
            navigation: accounts::navigation::navigation(session),
            notice: session.notice.clone(),
            can_act: session.role >= ContactRole::Accountant,
            can_manage: session.role >= ContactRole::Owner,
            search: matches!(session.person.owner, SessionOwner::Integrator(_))
                .then_some(&SWITCHER),
            ..Self::for_person(&session.person, &session.csrf, title)
        }
    }

    /// Returns the frame of a page about all taxpayers of an integrator.
    pub(crate) fn for_integrator(integrator: &SignedInIntegrator, title: &str) -> Self {
        Self {
            navigation: accounts::navigation::integrator_navigation(),
            notice: integrator.notice.clone(),
            can_act: true,
            can_manage: true,
            search: Some(&SWITCHER),
            ..Self::for_person(&integrator.person, &integrator.csrf, title)
        }
    }

    /// Assigns the page to this entry of the navigation. By default it belongs to the entry with its title.
    #[must_use]
    pub(crate) fn with_section(self, section: &str) -> Self {
        Self {
            section: section.to_owned(),
            ..self
        }
    }

    /// Returns the frame of a page about a person, not about a taxpayer.
    pub(crate) fn for_person(person: &Person, csrf: &str, title: &str) -> Self {
        let name = person.name.clone().unwrap_or_else(|| person.email.clone());
        Self {
            person: name,
            csrf: csrf.to_owned(),
            ..Self::for_visitor(title)
        }
    }

    /// Returns the frame of a page that everybody may see.
    pub(crate) fn for_visitor(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            section: title.to_owned(),
            assets: &ASSET_ADDRESSES,
            navigation: Vec::new(),
            account: None,
            person: String::new(),
            notice: None,
            incident: None,
            replica: String::new(),
            csrf: String::new(),
            can_act: false,
            can_manage: false,
            search: None,
        }
    }
}
