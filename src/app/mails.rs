//! Builds the mailer from the settings and starts its actors.

use actix::Addr;
use jiff::SignedDuration;
use secrecy::{ExposeSecret as _, SecretString};
use supervision::{Period, PeriodicActor};
use webhook_client::GuardedClient;

use crate::actors::dispatch::DispatcherActor;
use crate::actors::kinds;
use crate::actors::mail::{LANES, LOOK_EVERY, MailPolicy, MailTransport, Mailer, TransportError};
use crate::app::build_context::BuildContext;
use crate::config::{Environment, Settings};
use crate::domain::mail_links::MailLinks;
use crate::store::lanes::LaneKind;
use crate::store::operations::notices::GatherDelays;

/// The folder in `data_dir` that mails are written to in development.
const FOLDER: &str = "mails";

/// Returns true if this service can send mails: with an SMTP server or, in development without one, by writing them
/// into a folder.
pub(super) fn can_send_mails(settings: &Settings) -> bool {
    let has_server = !settings.mail.smtp_url.expose_secret().is_empty();
    has_server || settings.environment == Environment::Development
}

/// Returns the signer of links in mails. It signs with the encryption key and also accepts the older keys, so each
/// replica accepts the links of the others while the key is being replaced. Keys are trimmed, because on some replicas
/// a line break may follow the key.
pub(super) fn mail_links(settings: &Settings) -> MailLinks {
    let secrets = &settings.secrets;
    let trim = |key: &SecretString| SecretString::from(key.expose_secret().trim());
    let mut others: Vec<_> = secrets.encryption_keys.iter().map(trim).collect();
    // Earlier versions did not trim the key, and their links must stay valid.
    others.push(secrets.encryption_key.clone());
    MailLinks::new(trim(&secrets.encryption_key)).with_other_secrets(others)
}

impl BuildContext<'_> {
    /// Returns the mailer; `None` in production without an SMTP server, because nobody would look into a folder.
    pub(super) fn mailer(&self, chat: GuardedClient) -> Result<Option<Mailer>, TransportError> {
        let mail = &self.settings.mail;
        let has_server = !mail.smtp_url.expose_secret().is_empty();
        let transport = match self.settings.environment {
            _ if has_server => MailTransport::smtp(&mail.smtp_url, &mail.from)?,
            Environment::Development => {
                MailTransport::folder(self.settings.data_dir.join(FOLDER), &mail.from)?
            }
            Environment::Production => return Ok(None),
        };
        let seconds =
            |number: u64| SignedDuration::from_secs(i64::try_from(number).unwrap_or(i64::MAX));
        let http = &self.settings.http;
        let origin = http.public_url.as_ref().map_or_else(
            || format!("http://{}", http.bind),
            |url| url.as_str().trim_end_matches('/').to_owned(),
        );
        Ok(Some(Mailer {
            store: self.store.clone(),
            clock: self.clock.clone(),
            policy: MailPolicy {
                gather: GatherDelays {
                    gather: seconds(mail.gather_s),
                    repeat: seconds(mail.repeat_s),
                },
                deadline_before: seconds(mail.deadline_before_s),
            },
            origin,
            links: mail_links(self.settings),
            transport,
            chat,
        }))
    }

    pub(super) fn start_mailer(
        &self,
        mailer: Mailer,
    ) -> (Addr<DispatcherActor>, Addr<PeriodicActor>) {
        let waking_mailer = mailer.clone();
        let config = self.dispatcher_config(LaneKind::Mail, LANES);
        let dispatcher = self.dispatcher(config, async move |lease| mailer.work(lease).await);
        let period = Period::new(kinds::INBOUND, "mails", LOOK_EVERY);
        let lane_waker = self.start_periodic(period, async move || {
            waking_mailer.wake_due_lanes().await.map(|()| None)
        });
        let dispatcher = dispatcher.start(&self.tree, &self.arbiters, kinds::INBOUND);
        (dispatcher, lane_waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::notice::{NoticeScope, NoticeTopic};

    fn links_with(key: &str) -> MailLinks {
        let variable = (
            "EINVOICE__SECRETS__ENCRYPTION_KEY".to_owned(),
            key.to_owned(),
        );
        mail_links(&Settings::load(None, [variable].into_iter()).unwrap())
    }

    #[test]
    fn a_line_break_after_the_key_changes_no_link() {
        const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let person: NoticeScope = "contact/7/9".parse().unwrap();
        for (one, other) in [("", "\n"), ("\n", ""), ("\n", "\n")] {
            let signer = links_with(&format!("{KEY}{one}"));
            let path = signer.unsubscribe_path(person, NoticeTopic::Outage);
            let parts: Vec<_> = path.split('/').collect();
            let [_, _, _, slug, topic, signature] = parts[..] else {
                panic!("{path}")
            };
            let verified_link =
                links_with(&format!("{KEY}{other}")).verify_link(slug, topic, signature);
            assert!(verified_link.is_some(), "{one:?} {other:?}");
        }
    }
}
