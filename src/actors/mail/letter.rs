//! Writes the mail about several notices of one topic: what happened, since when, what to do and where.

use askama::Template;

use crate::domain::notice::{Notice, NoticeKind, NoticeScope, NoticeTopic};
use crate::store::operations::mails::Letter;

/// The most notices that a mail lists. The others are counted.
const LINES_MAX: usize = 20;

/// The notices that a mail is about, earliest first, and whom it is for.
pub(super) struct Digest<'a> {
    pub(super) scope: NoticeScope,
    pub(super) topic: NoticeTopic,
    pub(super) notices: &'a [Notice],
    /// The name and tax number of the account; empty if the mail is about no single one.
    pub(super) account: &'a str,
    /// The address that links begin with.
    pub(super) origin: &'a str,
    /// The address with which the recipient ends such mails; `None` if these do not end.
    pub(super) unsubscribe: Option<&'a str>,
}

/// The content of a mail about notices, for both its forms.
struct Content<'a> {
    subject: &'a str,
    account: &'a str,
    lines: &'a [String],
    more: usize,
    steps: &'a [&'static str],
    link: &'a str,
    why: &'static str,
    unsubscribe: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "mail/notice.txt")]
struct PlainLetter<'a> {
    content: &'a Content<'a>,
}

#[derive(Template)]
#[template(path = "mail/notice.html")]
struct HtmlLetter<'a> {
    content: &'a Content<'a>,
}

impl Digest<'_> {
    pub(super) fn render(&self) -> Result<Letter, askama::Error> {
        let subject = self.subject();
        let lines: Vec<_> = self.notices.iter().take(LINES_MAX).map(line).collect();
        let content = Content {
            subject: &subject,
            account: self.account,
            more: self.notices.len() - lines.len(),
            lines: &lines,
            steps: &self.steps(),
            link: &format!("{}{}", self.origin, self.topic.path(self.scope)),
            why: self.why(),
            unsubscribe: self.unsubscribe,
        };
        let text = PlainLetter { content: &content }.render()?;
        let html = HtmlLetter { content: &content }.render()?;
        Ok(Letter {
            subject,
            text,
            html,
        })
    }

    /// Says what happened: the only thing, or that it works again, or how many things.
    fn subject(&self) -> String {
        let last = self.notices.last();
        let only = last.filter(|last| self.notices.len() == 1 || last.kind.is_recovery());
        let count = u64::try_from(self.notices.len()).unwrap_or(u64::MAX);
        let said = only.map_or_else(
            || self.topic.summary(count),
            |only| only.kind.sentence(&only.about),
        );
        if self.account.is_empty() {
            return said;
        }
        format!("{said} ({})", self.account)
    }

    /// Returns the advice of each kind once. What works again needs none beside what does not.
    fn steps(&self) -> Vec<&'static str> {
        let kinds = NoticeKind::ALL.iter();
        let is_over = self
            .notices
            .last()
            .is_some_and(|last| last.kind.is_recovery());
        kinds
            .filter(|kind| self.notices.iter().any(|notice| notice.kind == **kind))
            .filter(|kind| kind.is_recovery() == is_over)
            .map(|kind| kind.what_to_do())
            .collect()
    }

    fn why(&self) -> &'static str {
        match self.scope {
            NoticeScope::Taxpayer(_) => {
                "You get this mail because of your role in this account. Owners change roles under People."
            }
            NoticeScope::Person(_) | NoticeScope::SignIn => {
                "You get this mail because it is about your own account."
            }
        }
    }
}

fn line(notice: &Notice) -> String {
    let at = notice.at.strftime("%Y-%m-%d %H:%M");
    let sentence = notice.kind.sentence(&notice.about);
    if notice.detail.is_empty() {
        format!("{at} {sentence}.")
    } else {
        format!("{at} {sentence}: {}", notice.detail)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    const SCOPE: NoticeScope = NoticeScope::Taxpayer(TaxpayerId(7));

    fn notice(kind: NoticeKind, about: &str) -> Notice {
        Notice::new(SCOPE, kind, Timestamp::UNIX_EPOCH).about(about, "")
    }

    fn render(notices: &[Notice]) -> Letter {
        let digest = Digest {
            scope: SCOPE,
            topic: notices[0].kind.topic(),
            notices,
            account: "Mill & Sons, TIN 1",
            origin: "https://x.example",
            unsubscribe: Some("https://x.example/stop"),
        };
        digest.render().unwrap()
    }

    #[test]
    fn one_notice_is_the_subject_and_says_what_to_do_and_where() {
        let rejected = notice(NoticeKind::InvoiceRejected, "INV-1").about("INV-1", "no TIN <b>");
        let letter = render(&[rejected]);
        assert_eq!(
            letter.subject,
            "The authority rejected invoice INV-1 (Mill & Sons, TIN 1)"
        );
        insta::assert_snapshot!(letter.text, @"
        Mill & Sons, TIN 1

        What happened (times in UTC):
        - 1970-01-01 00:00 The authority rejected invoice INV-1: no TIN <b>

        What to do:
        - Open the invoice, correct what the reason names, and send it again before its deadline.

        https://x.example/dashboard/7/invoices?authority_status=REJECTED%2CFAILED

        You get this mail because of your role in this account. Owners change roles under People.
        Snooze or end mails about this: https://x.example/stop
        ");
        assert!(letter.html.contains("Mill &#38; Sons"), "{}", letter.html);
        assert!(
            letter.html.contains("no TIN &#60;b&#62;"),
            "{}",
            letter.html
        );
    }

    #[test]
    fn many_notices_are_counted_and_the_first_are_listed() {
        let rejected = notice(NoticeKind::InvoiceRejected, "INV-1");
        let letter = render(&vec![rejected; 260]);
        assert!(
            letter
                .subject
                .starts_with("260 invoices were rejected or failed")
        );
        assert!(letter.text.contains("and 240 more."), "{}", letter.text);
        assert_eq!(letter.text.matches("Open the invoice").count(), 1);
    }

    #[test]
    fn what_works_again_is_told_as_that() {
        let letter = render(&[
            notice(NoticeKind::OutageStarted, ""),
            notice(NoticeKind::OutageEnded, ""),
        ]);
        assert!(letter.subject.starts_with("The tax authority works again"));
        assert!(letter.text.contains("does not answer"), "{}", letter.text);
        assert!(
            letter.text.contains("- Nothing: what was queued"),
            "{}",
            letter.text
        );
        assert!(!letter.text.contains("what you send"), "{}", letter.text);
    }
}
