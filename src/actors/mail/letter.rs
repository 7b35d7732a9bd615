//! Writes the mail about several notices of one topic: what happened, since when, what to do and where.

use std::collections::HashSet;

use askama::Template;

use crate::domain::access::session::SessionOwner;
use crate::domain::notice::{Notice, NoticeKind, NoticeScope, NoticeTopic};
use crate::store::operations::mails::Letter;

/// The maximum number of notices that a mail lists. Of further notices, the mail gives only the number.
const LINES_MAX: usize = 20;

/// The notices that one mail is about, oldest first, and the data that the mail needs about its recipient.
pub(super) struct NoticeDigest<'a> {
    pub(super) scope: NoticeScope,
    pub(super) topic: NoticeTopic,
    pub(super) notices: &'a [Notice],
    /// The name and tax number of the account; empty if the mail is not about one account.
    pub(super) account: &'a str,
    /// The address that links begin with.
    pub(super) origin: &'a str,
    /// The address at which the recipient can unsubscribe from mails about this topic; `None` if that is not possible.
    pub(super) unsubscribe: Option<&'a str>,
}

/// The content of a mail about notices, for both its text and its HTML form.
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

impl Content<'_> {
    /// Renders the text and the HTML form.
    fn render(&self) -> Result<(String, String), askama::Error> {
        let text = PlainLetter { content: self }.render()?;
        let html = HtmlLetter { content: self }.render()?;
        Ok((text, html))
    }

    /// Returns the text and the HTML form without using a template: the same sentences, one on each line.
    fn render_without_template(&self) -> (String, String) {
        let mut lines = vec![self.account.to_owned()];
        lines.extend(self.lines.iter().cloned());
        if self.more > 0 {
            lines.push(format!("and {} more.", self.more));
        }
        lines.extend(self.steps.iter().map(|step| (*step).to_owned()));
        lines.extend([self.link.to_owned(), self.why.to_owned()]);
        lines.extend(self.unsubscribe.map(str::to_owned));
        lines.retain(|line| !line.is_empty());
        let text = lines.join("\n");
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let html =
            format!("<!doctype html><html lang=\"en\"><body><pre>{escaped}</pre></body></html>");
        (text, html)
    }
}

impl NoticeDigest<'_> {
    /// Writes the mail. The notices are deleted in the same transaction, so if a template fails, the mail is written in
    /// a plain form instead.
    pub(super) fn render(&self) -> Letter {
        let subject = self.subject();
        let lines: Vec<_> = self
            .notices
            .iter()
            .take(LINES_MAX)
            .map(notice_line)
            .collect();
        let content = Content {
            subject: &subject,
            account: self.account,
            more: self.notices.len() - lines.len(),
            lines: &lines,
            steps: &self.advice_steps(),
            link: &format!("{}{}", self.origin, self.topic.page_path(self.scope)),
            why: self.reason_for_mail(),
            unsubscribe: self.unsubscribe,
        };
        let (text, html) = content.render().unwrap_or_else(|error| {
            tracing::error!(%error, "the template of a mail failed; the mail is written in a plain form");
            content.render_without_template()
        });
        Letter {
            subject,
            text,
            html,
        }
    }

    /// Returns the notices that the subject and the advice are about: those about things that are still broken or, if
    /// nothing is broken, the recoveries. A recovery only cancels earlier notices about the same thing.
    fn notices_for_subject_and_advice(&self) -> Vec<&Notice> {
        let mut broken: Vec<&Notice> = Vec::new();
        for notice in self.notices {
            if notice.kind.is_recovery() {
                broken.retain(|earlier| earlier.about != notice.about);
            } else {
                broken.push(notice);
            }
        }
        if broken.is_empty() {
            let recoveries = self.notices.iter();
            return recoveries
                .filter(|notice| notice.kind.is_recovery())
                .collect();
        }
        broken
    }

    /// Returns the subject, with the account: a sentence if the mail is about one thing or one notice, otherwise a
    /// summary with the number of things or notices.
    fn subject(&self) -> String {
        let notices = self.notices_for_subject_and_advice();
        let count = if self.topic.counts_distinct_subjects() {
            let things: HashSet<_> = notices.iter().map(|notice| &notice.about).collect();
            things.len()
        } else {
            notices.len()
        };
        let is_recovery = notices.iter().any(|notice| notice.kind.is_recovery());
        let said = match notices.last() {
            Some(only) if count == 1 => only.kind.event_sentence(&only.about),
            _ => self.topic.mail_subject(count, is_recovery),
        };
        if self.account.is_empty() {
            return said;
        }
        format!("{said} ({})", self.account)
    }

    /// Returns the advice for each kind of notice once. Recoveries need no advice while something else is still broken.
    fn advice_steps(&self) -> Vec<&'static str> {
        let notices = self.notices_for_subject_and_advice();
        let kinds = NoticeKind::ALL.iter();
        kinds
            .filter(|kind| notices.iter().any(|notice| notice.kind == **kind))
            .map(|kind| kind.advice())
            .collect()
    }

    fn reason_for_mail(&self) -> &'static str {
        match (self.scope, self.topic) {
            (NoticeScope::Taxpayer(_), _) => {
                "You get this mail because of your role in this account. Owners change roles under People."
            }
            (
                NoticeScope::Person(SessionOwner::Integrator(_)),
                NoticeTopic::Webhook | NoticeTopic::Outage,
            ) => "You get this mail because you are the integrator of accounts in this service.",
            (NoticeScope::Person(_) | NoticeScope::SignIn, _) => {
                "You get this mail because it is about your own account."
            }
        }
    }
}

fn notice_line(notice: &Notice) -> String {
    let at = notice.at.strftime("%Y-%m-%d %H:%M");
    let sentence = notice.kind.event_sentence(&notice.about);
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
    use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

    const SCOPE: NoticeScope = NoticeScope::Taxpayer(TaxpayerId(7));

    fn notice(kind: NoticeKind, about: &str) -> Notice {
        Notice::new(SCOPE, kind, Timestamp::UNIX_EPOCH).with_subject(about, "")
    }

    fn render(notices: &[Notice]) -> Letter {
        let digest = NoticeDigest {
            scope: SCOPE,
            topic: notices[0].kind.topic(),
            notices,
            account: "Mill & Sons, TIN 1",
            origin: "https://x.example",
            unsubscribe: Some("https://x.example/stop"),
        };
        digest.render()
    }

    #[test]
    fn one_notice_is_the_subject_and_says_what_to_do_and_where() {
        let rejected =
            notice(NoticeKind::InvoiceRejected, "INV-1").with_subject("INV-1", "no TIN <b>");
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

        https://x.example/dashboard/7/invoices?authority_status=REJECTED%2CFAILED&without_cancelled=true

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
    fn a_mail_without_its_template_says_the_same() {
        let line = "1970-01-01 00:00 The authority rejected invoice INV-1: no TIN <b> & no name";
        let content = |account, more, unsubscribe| {
            Content {
                subject: "s",
                account,
                lines: &[line.to_owned()],
                more,
                steps: &["Correct it."],
                link: "https://x.example/?a=1&b=2",
                why: "It is yours.",
                unsubscribe,
            }
            .render_without_template()
        };
        let common = format!("{line}\nCorrect it.\nhttps://x.example/?a=1&b=2\nIt is yours.");
        let cases = [
            (content("", 0, None), common.clone()),
            (
                content("Mill & Sons", 2, Some("https://x.example/stop")),
                format!("Mill & Sons\n{common}\nhttps://x.example/stop")
                    .replace("name\n", "name\nand 2 more.\n"),
            ),
        ];
        for ((text, html), expected) in cases {
            assert_eq!(text, expected);
            assert!(html.contains("no TIN &lt;b> &amp; no name"), "{html}");
            assert!(html.contains("/?a=1&amp;b=2"), "{html}");
        }
    }

    #[test]
    fn many_notices_are_counted_and_the_first_are_listed() {
        let numbers = (0..260).map(|number| format!("INV-{number}"));
        let rejected = numbers.map(|number| notice(NoticeKind::InvoiceRejected, &number));
        let letter = render(&rejected.collect::<Vec<_>>());
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

    #[test]
    fn the_subject_and_the_advice_are_about_what_is_still_broken() {
        use NoticeKind::{
            EndpointDisabled, EndpointFailing, EndpointWorks, InvoiceFailed, InvoiceRejected,
            KeyChanged, OutageEnded, OutageStarted,
        };
        type Told<'a> = &'a [(NoticeKind, &'a str)];
        let table: [(Told<'_>, &str, &[NoticeKind]); 8] = [
            (
                &[
                    (EndpointDisabled, "A"),
                    (EndpointFailing, "B"),
                    (EndpointWorks, "B"),
                ],
                "The webhook at A is disabled",
                &[EndpointDisabled],
            ),
            (
                &[(EndpointWorks, "A"), (EndpointFailing, "A")],
                "The webhook at A fails",
                &[EndpointFailing],
            ),
            (
                &[(EndpointFailing, "A"), (EndpointDisabled, "B")],
                "2 webhooks fail or are disabled",
                &[EndpointFailing, EndpointDisabled],
            ),
            (
                &[
                    (EndpointFailing, "A"),
                    (EndpointWorks, "A"),
                    (EndpointWorks, "B"),
                ],
                "2 webhooks work again",
                &[EndpointWorks],
            ),
            (
                &[(OutageStarted, ""), (OutageEnded, ""), (OutageStarted, "")],
                "The tax authority does not answer",
                &[OutageStarted],
            ),
            (
                &[(InvoiceRejected, "1"), (InvoiceRejected, "1")],
                "The authority rejected invoice 1",
                &[InvoiceRejected],
            ),
            (
                &[
                    (InvoiceRejected, "1"),
                    (InvoiceFailed, "2"),
                    (InvoiceRejected, "1"),
                ],
                "2 invoices were rejected or failed",
                &[InvoiceRejected, InvoiceFailed],
            ),
            (
                &[(KeyChanged, "Same"), (KeyChanged, "Same")],
                "2 changes of keys or passwords",
                &[KeyChanged],
            ),
        ];
        for (told, subject, advised) in table {
            let notices: Vec<_> = told.iter().map(|told| notice(told.0, told.1)).collect();
            let letter = render(&notices);
            assert_eq!(letter.subject, format!("{subject} (Mill & Sons, TIN 1)"));
            for kind in NoticeKind::ALL {
                let advice = format!("- {}", kind.advice());
                let is_told = letter.text.contains(&advice);
                assert_eq!(is_told, advised.contains(kind), "{}", letter.text);
            }
        }
    }

    #[test]
    fn the_copy_for_an_integrator_names_the_taxpayer_and_says_why_it_comes() {
        let told = notice(NoticeKind::EndpointDisabled, "https://a.example");
        let copy = told.for_integrator(IntegratorId(3), "Mill & Sons", "1");
        let digest = NoticeDigest {
            scope: copy.scope,
            topic: copy.kind.topic(),
            notices: &[copy],
            account: "",
            origin: "https://x.example",
            unsubscribe: None,
        };
        let letter = digest.render();
        let named = "The webhook at https://a.example of Mill & Sons, TIN 1 is disabled";
        assert_eq!(letter.subject, named);
        for part in [named, "you are the integrator of accounts"] {
            assert!(letter.text.contains(part), "{}", letter.text);
        }
        assert!(!letter.text.contains("your own account"), "{}", letter.text);
    }
}
