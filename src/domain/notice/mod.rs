//! The notices that people get by mail: their kinds, their recipients, and their texts with advice.

mod scope;

use jiff::Timestamp;

pub use self::scope::NoticeScope;

use crate::domain::access::invitation::INVITATION_PATH;
use crate::domain::access::session::{ContactRole, SessionOwner};
use crate::domain::kernel::audit::{ActorKind, AuditAction, AuditEntry};
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

words! {
    /// The topic of a mail. All notices of a topic that wait for one person go into one mail.
    NoticeTopic {
        Access = "access",
        Security = "security",
        Webhook = "webhook",
        Invoices = "invoices",
        Deadlines = "deadlines",
        Outage = "outage",
    }
}

words! {
    NoticeKind {
        Invited = "invited",
        PasswordLost = "password-lost",
        KeyChanged = "key-changed",
        PasswordChanged = "password-changed",
        EndpointFailing = "endpoint-failing",
        EndpointDisabled = "endpoint-disabled",
        EndpointWorks = "endpoint-works",
        InvoiceRejected = "invoice-rejected",
        InvoiceFailed = "invoice-failed",
        DeadlineNear = "deadline-near",
        DeadlineMissed = "deadline-missed",
        OutageStarted = "outage-started",
        OutageEnded = "outage-ended",
    }
}

/// A message about one event, which people get by mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub scope: NoticeScope,
    pub kind: NoticeKind,
    /// The subject of the notice, such as an invoice number.
    pub about: String,
    /// More about the event, such as its reason or a deadline; may be empty.
    pub detail: String,
    pub at: Timestamp,
}

/// The text that stands in a stored mail in place of the secret of its link. The secret is inserted when the mail is
/// sent.
pub const LINK_PLACEHOLDER: &str = "the-secret-of-the-link";
/// The maximum number of characters of `about`; longer texts are cut, because they may come from strangers. No invoice
/// number is longer. So an invoice number is never cut, and the mailer can look up by it whether the invoice still
/// needs the notice. `DETAIL_CHARS_MAX` is the maximum for `detail`.
const ABOUT_CHARS_MAX: usize = 255;
const DETAIL_CHARS_MAX: usize = 300;
/// The detail of a notice about a deadline. Sorted as texts, such details are in the order of their deadlines.
const DEADLINE_FORM: &str = "It must be signed by %Y-%m-%d %H:%M UTC";

impl Notice {
    pub fn new(scope: NoticeScope, kind: NoticeKind, at: Timestamp) -> Self {
        Self {
            scope,
            kind,
            about: String::new(),
            detail: String::new(),
            at,
        }
    }

    #[must_use]
    pub fn with_subject(self, about: &str, detail: &str) -> Self {
        Self {
            about: to_one_line(about, ABOUT_CHARS_MAX),
            detail: to_one_line(detail, DETAIL_CHARS_MAX),
            ..self
        }
    }

    /// Returns the notice that the deadline of an invoice is near.
    pub fn deadline_near(
        taxpayer: TaxpayerId,
        number: &str,
        deadline: Timestamp,
        now: Timestamp,
    ) -> Self {
        let notice = Self::new(
            NoticeScope::Taxpayer(taxpayer),
            NoticeKind::DeadlineNear,
            now,
        );
        notice.with_subject(number, &deadline.strftime(DEADLINE_FORM).to_string())
    }

    /// Returns the notice as it applies now: a deadline that was near may meanwhile have been missed.
    #[must_use]
    pub fn update_deadline_kind(self, now: Timestamp) -> Self {
        let is_missed = self.kind == NoticeKind::DeadlineNear
            && self.detail < now.strftime(DEADLINE_FORM).to_string();
        if is_missed {
            return Self {
                kind: NoticeKind::DeadlineMissed,
                ..self
            };
        }
        self
    }

    /// Returns a copy of the notice for the integrator of a taxpayer. It names the taxpayer.
    #[must_use]
    pub fn for_integrator(&self, integrator: IntegratorId, name: &str, tin: &str) -> Self {
        let name = to_one_line(name, ABOUT_CHARS_MAX);
        Self {
            scope: NoticeScope::Person(SessionOwner::Integrator(integrator)),
            about: format!("{} of {name}, TIN {tin}", self.about),
            ..self.clone()
        }
    }

    /// Returns the notice about an audited change of keys, passwords or second factors; `None` for other actions.
    pub fn for_audit(entry: &AuditEntry) -> Option<Self> {
        let (kind, about) = match entry.action {
            AuditAction::RotateTaxpayerKey
            | AuditAction::RotateIntegratorKey
            | AuditAction::RotateOperatorKey => (NoticeKind::KeyChanged, "An API key was created"),
            AuditAction::RevokeTaxpayerKey
            | AuditAction::RevokeIntegratorKeys
            | AuditAction::RevokeOperatorKeys => (NoticeKind::KeyChanged, "An API key was revoked"),
            AuditAction::RotateWebhookSecret => (
                NoticeKind::KeyChanged,
                "The signing secret of the webhook was replaced",
            ),
            AuditAction::ChangePassword | AuditAction::AcceptInvitation => {
                (NoticeKind::PasswordChanged, "Your password was changed")
            }
            AuditAction::ResetSecondFactor | AuditAction::DisableSecondFactor => (
                NoticeKind::PasswordChanged,
                "Your second factor was removed",
            ),
            _ => return None,
        };
        let who = match entry.actor.kind() {
            ActorKind::Operator => "by an operator of this service",
            ActorKind::Integrator => "by the integrator",
            ActorKind::Contact => "by a person who was signed in",
            ActorKind::TaxpayerKey => "with an API key",
            ActorKind::CommandLine => "on the command line of this service",
            ActorKind::Authority | ActorKind::Service => "by this service",
        };
        let scope = audit_scope(entry, kind)?;
        Some(Self::new(scope, kind, entry.at).with_subject(about, who))
    }
}

/// Returns the people whose key or password an audited action changed.
fn audit_scope(entry: &AuditEntry, kind: NoticeKind) -> Option<NoticeScope> {
    let id = || entry.subject.parse().ok();
    let owner = match (entry.taxpayer_id, entry.action) {
        (Some(taxpayer), _) if kind == NoticeKind::KeyChanged => {
            return Some(NoticeScope::Taxpayer(taxpayer));
        }
        (Some(taxpayer), _) => SessionOwner::Contact {
            taxpayer,
            id: ContactId(id()?),
        },
        (None, AuditAction::RotateOperatorKey | AuditAction::RevokeOperatorKeys) => {
            SessionOwner::Operator(id()?)
        }
        (None, AuditAction::RotateIntegratorKey | AuditAction::RevokeIntegratorKeys) => {
            SessionOwner::Integrator(IntegratorId(id()?))
        }
        (None, _) => match entry.integrator_id {
            Some(integrator) if integrator.0 == id()? => SessionOwner::Integrator(integrator),
            _ => SessionOwner::Operator(id()?),
        },
    };
    Some(NoticeScope::Person(owner))
}

/// Returns a text of unknown origin in one line and without control characters, which a terminal or mail program would
/// obey.
fn to_one_line(text: &str, chars_max: usize) -> String {
    let mut line: String = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(chars_max)
        .collect();
    if text.chars().nth(chars_max).is_some() {
        line.push('…');
    }
    line.trim().to_owned()
}

impl NoticeTopic {
    /// Returns the lowest role that a contact person of the taxpayer needs to get the notice.
    pub fn least_role(self) -> ContactRole {
        match self {
            Self::Access | Self::Security | Self::Webhook => ContactRole::Owner,
            Self::Invoices | Self::Deadlines | Self::Outage => ContactRole::Accountant,
        }
    }

    /// True if a person may turn off mails about this topic.
    pub fn may_be_muted(self) -> bool {
        !matches!(self, Self::Access | Self::Security)
    }

    /// Returns the topic in words, for the settings page.
    pub fn label(self) -> &'static str {
        match self {
            Self::Access => "Invitations and lost passwords",
            Self::Security => "Changes of keys and passwords",
            Self::Webhook => "Webhooks that fail, are disabled or work again",
            Self::Invoices => "Rejected and failed invoices",
            Self::Deadlines => "Invoices near their deadline",
            Self::Outage => "Outages of the tax authority",
        }
    }

    /// True if a mail about this topic is sent at once. Notices of other topics wait for some time, so that one mail
    /// sums up several.
    pub fn is_urgent(self) -> bool {
        matches!(self, Self::Access | Self::Security)
    }

    /// True if the next mail about this topic waits for longer than one about another topic, because there may be many
    /// notices a day.
    pub fn is_frequent(self) -> bool {
        self == Self::Invoices
    }

    /// True if a mail counts the things that its notices are about, so that several notices about one thing count once.
    pub fn counts_distinct_subjects(self) -> bool {
        !matches!(self, Self::Access | Self::Security)
    }

    /// Returns the subject of a mail with several notices. `is_recovery` is true if all of them say that something
    /// works again.
    pub fn mail_subject(self, count: usize, is_recovery: bool) -> String {
        match self {
            Self::Access => "Choose your password".to_owned(),
            Self::Security => format!("{count} changes of keys or passwords"),
            Self::Webhook if is_recovery => format!("{count} webhooks work again"),
            Self::Webhook => format!("{count} webhooks fail or are disabled"),
            Self::Invoices => format!("{count} invoices were rejected or failed"),
            Self::Deadlines => format!("{count} invoices are near or past their deadline"),
            Self::Outage => "The tax authority was down for a while".to_owned(),
        }
    }

    /// Returns the path of the page that shows more about this topic.
    pub fn page_path(self, scope: NoticeScope) -> String {
        match (scope, self) {
            (_, Self::Access) => format!("{INVITATION_PATH}{LINK_PLACEHOLDER}"),
            (NoticeScope::Taxpayer(id), Self::Security) => format!("/dashboard/{id}/activity"),
            (NoticeScope::Taxpayer(id), Self::Webhook) => format!("/dashboard/{id}/webhooks"),
            (NoticeScope::Taxpayer(id), Self::Invoices) => {
                format!(
                    "/dashboard/{id}/invoices?authority_status=REJECTED%2CFAILED&without_cancelled=true"
                )
            }
            (NoticeScope::Taxpayer(id), Self::Deadlines | Self::Outage) => {
                format!("/dashboard/{id}")
            }
            (NoticeScope::Person(SessionOwner::Integrator(_)), Self::Webhook) => {
                "/dashboard/taxpayers?need=webhook".to_owned()
            }
            (NoticeScope::Person(_), Self::Outage) => {
                "/dashboard/taxpayers?need=waiting".to_owned()
            }
            (NoticeScope::Person(_) | NoticeScope::SignIn, _) => "/account/sessions".to_owned(),
        }
    }
}

impl NoticeKind {
    pub fn topic(self) -> NoticeTopic {
        match self {
            Self::Invited | Self::PasswordLost => NoticeTopic::Access,
            Self::KeyChanged | Self::PasswordChanged => NoticeTopic::Security,
            Self::EndpointFailing | Self::EndpointDisabled | Self::EndpointWorks => {
                NoticeTopic::Webhook
            }
            Self::InvoiceRejected | Self::InvoiceFailed => NoticeTopic::Invoices,
            Self::DeadlineNear | Self::DeadlineMissed => NoticeTopic::Deadlines,
            Self::OutageStarted | Self::OutageEnded => NoticeTopic::Outage,
        }
    }

    /// True if the notice says that something works again.
    pub fn is_recovery(self) -> bool {
        matches!(self, Self::EndpointWorks | Self::OutageEnded)
    }

    /// True if the integrator of the taxpayer is told, too.
    pub fn tells_integrator(self) -> bool {
        self.topic() == NoticeTopic::Webhook
    }

    /// Returns the event in a sentence, without the full stop.
    pub fn event_sentence(self, about: &str) -> String {
        match self {
            Self::Invited => "You are invited to einvoice".to_owned(),
            Self::PasswordLost => "A new password was asked for".to_owned(),
            Self::KeyChanged | Self::PasswordChanged => about.to_owned(),
            Self::EndpointFailing => format!("The webhook at {about} fails"),
            Self::EndpointDisabled => format!("The webhook at {about} is disabled"),
            Self::EndpointWorks => format!("The webhook at {about} works again"),
            Self::InvoiceRejected => format!("The authority rejected invoice {about}"),
            Self::InvoiceFailed => format!("Invoice {about} failed for too long"),
            Self::DeadlineNear => format!("Invoice {about} is near its deadline"),
            Self::DeadlineMissed => format!("Invoice {about} missed its deadline"),
            Self::OutageStarted => "The tax authority does not answer".to_owned(),
            Self::OutageEnded => "The tax authority works again".to_owned(),
        }
    }

    pub fn advice(self) -> &'static str {
        match self {
            Self::Invited => {
                "Open the link within 72 hours and choose your password. The link works once."
            }
            Self::PasswordLost => {
                "Open the link within 72 hours and choose a new password. The link works once. If it was not you who \
                 asked, do nothing: your password stays."
            }
            Self::KeyChanged => {
                "If you know of it, do nothing. If not, revoke the key under API keys and ask who made it."
            }
            Self::PasswordChanged => {
                "If it was you, do nothing. If not, ask an owner of the account for a new link at once."
            }
            Self::EndpointFailing => {
                "Look at your endpoint. Deliveries wait, and go on by themselves as soon as it answers with 2xx."
            }
            Self::EndpointDisabled => {
                "Mend your endpoint, then enable the webhook on its page. What happened meanwhile is sent then."
            }
            Self::EndpointWorks => "Nothing: what waited is being delivered.",
            Self::InvoiceRejected => {
                "Open the invoice, correct what the reason names, and send it again before its deadline."
            }
            Self::InvoiceFailed => {
                "Open the invoice and look at the reason. An operator of this service has been told, too."
            }
            Self::DeadlineNear => {
                "Open the invoice: correct it if it was rejected. If it only waits for the authority, it goes on by itself."
            }
            Self::DeadlineMissed => {
                "Open the invoice: correct it if it was rejected, and send it as soon as you can."
            }
            Self::OutageStarted => {
                "Nothing: what you send is taken in and queued, and goes on by itself."
            }
            Self::OutageEnded => "Nothing: what was queued goes on by itself.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::audit::Actor;

    const SEVEN: TaxpayerId = TaxpayerId(7);

    #[test]
    fn each_kind_says_what_happened_and_what_to_do() {
        let table = [
            ("invited", "You are invited to einvoice", "within 72 hours"),
            (
                "password-lost",
                "A new password was asked for",
                "your password stays",
            ),
            ("key-changed", "X", "revoke the key"),
            ("password-changed", "X", "new link at once"),
            (
                "endpoint-failing",
                "The webhook at X fails",
                "answers with 2xx",
            ),
            (
                "endpoint-disabled",
                "The webhook at X is disabled",
                "enable the webhook",
            ),
            ("endpoint-works", "The webhook at X works again", "Nothing"),
            (
                "invoice-rejected",
                "The authority rejected invoice X",
                "send it again",
            ),
            (
                "invoice-failed",
                "Invoice X failed for too long",
                "look at the reason",
            ),
            (
                "deadline-near",
                "Invoice X is near its deadline",
                "correct it",
            ),
            (
                "deadline-missed",
                "Invoice X missed its deadline",
                "as soon as you can",
            ),
            (
                "outage-started",
                "The tax authority does not answer",
                "queued",
            ),
            ("outage-ended", "The tax authority works again", "by itself"),
        ];
        let kinds: Vec<_> = NoticeKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(table.map(|(kind, _, _)| kind).to_vec(), kinds);
        for (kind, sentence, advice) in table {
            let kind = NoticeKind::parse(kind).unwrap();
            assert_eq!(kind.event_sentence("X"), sentence);
            assert!(kind.advice().contains(advice), "{kind}");
        }
    }

    #[test]
    fn each_topic_says_who_is_told_and_where_to_act() {
        let owner = ContactRole::Owner;
        let accountant = ContactRole::Accountant;
        let rejected =
            "/dashboard/7/invoices?authority_status=REJECTED%2CFAILED&without_cancelled=true";
        let table = [
            (
                "access",
                owner,
                "/sign-in/invitation/the-secret-of-the-link",
            ),
            ("security", owner, "/dashboard/7/activity"),
            ("webhook", owner, "/dashboard/7/webhooks"),
            ("invoices", accountant, rejected),
            ("deadlines", accountant, "/dashboard/7"),
            ("outage", accountant, "/dashboard/7"),
        ];
        let topics: Vec<_> = NoticeTopic::ALL
            .iter()
            .map(|topic| topic.as_str())
            .collect();
        assert_eq!(table.map(|(topic, _, _)| topic).to_vec(), topics);
        for (topic, role, path) in table {
            let topic = NoticeTopic::parse(topic).unwrap();
            assert_eq!(topic.least_role(), role, "{topic}");
            assert_eq!(topic.page_path(NoticeScope::Taxpayer(SEVEN)), path);
        }
    }

    #[test]
    fn a_change_of_who_gets_in_is_told_to_those_whose_it_is() {
        let at = Timestamp::UNIX_EPOCH;
        let entry =
            |action, subject: i64| AuditEntry::new(Actor::CommandLine, action, &subject, at);
        let of_taxpayer = |action, subject| entry(action, subject).for_taxpayer(SEVEN);
        let of_integrator = |action| entry(action, 3).for_integrator(IntegratorId(3));
        let table = [
            (
                of_taxpayer(AuditAction::RotateTaxpayerKey, 7),
                Some("taxpayer/7"),
            ),
            (
                of_taxpayer(AuditAction::RevokeTaxpayerKey, 7),
                Some("taxpayer/7"),
            ),
            (
                of_taxpayer(AuditAction::RotateWebhookSecret, 7),
                Some("taxpayer/7"),
            ),
            (
                of_taxpayer(AuditAction::ChangePassword, 9),
                Some("contact/7/9"),
            ),
            (
                of_integrator(AuditAction::ChangePassword),
                Some("integrator/3"),
            ),
            (
                of_integrator(AuditAction::RotateIntegratorKey),
                Some("integrator/3"),
            ),
            (entry(AuditAction::AcceptInvitation, 1), Some("operator/1")),
            (
                entry(AuditAction::RevokeOperatorKeys, 1),
                Some("operator/1"),
            ),
            (of_taxpayer(AuditAction::SignIn, 9), None),
            (of_taxpayer(AuditAction::UpdateWebhook, 7), None),
        ];
        for (entry, scope) in table {
            let notice = Notice::for_audit(&entry);
            let told = notice.map(|notice| notice.scope.to_string());
            assert_eq!(told.as_deref(), scope, "{}", entry.action);
        }
    }

    #[test]
    fn a_deadline_is_missed_from_the_minute_after_it() {
        let deadline: Timestamp = "2027-01-15T12:00:30Z".parse().unwrap();
        let near = Notice::deadline_near(SEVEN, "INV-1", deadline, Timestamp::UNIX_EPOCH);
        assert_eq!(near.detail, "It must be signed by 2027-01-15 12:00 UTC");
        for (now, kind) in [
            ("2026-12-31T23:59:59Z", NoticeKind::DeadlineNear),
            ("2027-01-15T12:00:59Z", NoticeKind::DeadlineNear),
            ("2027-01-15T12:01:00Z", NoticeKind::DeadlineMissed),
            ("2027-02-01T00:00:00Z", NoticeKind::DeadlineMissed),
        ] {
            assert_eq!(
                near.clone().update_deadline_kind(now.parse().unwrap()).kind,
                kind,
                "{now}"
            );
        }
        let other = Notice::new(near.scope, NoticeKind::InvoiceRejected, deadline);
        assert_eq!(other.clone().update_deadline_kind(Timestamp::MAX), other);
    }

    #[test]
    fn texts_of_others_are_one_short_line() {
        let kind = NoticeKind::InvoiceRejected;
        let notice = Notice::new(NoticeScope::Taxpayer(SEVEN), kind, Timestamp::UNIX_EPOCH);
        let notice = notice.with_subject("INV\r\n1\u{1b}", &"x".repeat(400));
        assert_eq!(notice.about, "INV  1");
        assert_eq!(notice.detail.chars().count(), DETAIL_CHARS_MAX + 1);
        for (chars, kept) in [(255, 255), (256, 256), (300, 256)] {
            let about = notice.clone().with_subject(&"é".repeat(chars), "").about;
            assert_eq!(about.chars().count(), kept, "{chars}");
            assert_eq!(about.ends_with('…'), chars > 255, "{chars}");
        }
    }
}
