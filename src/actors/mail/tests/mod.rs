//! Tests on real databases: a day of causes makes a few mails, each once, whatever crashes or refuses.

mod deadlines;
mod office;
mod recipients;
mod sending;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use address_policy::AddressPolicy;
use database::page::Page;
use jiff::{SignedDuration, Timestamp};
use sea_orm::ConnectionTrait as _;
use tempfile::TempDir;
use timing::clock::{Clock as _, MockClock};
use uuid::Uuid;
use webhook_client::GuardedClient;

use super::{MailPolicy, MailTransport, Mailer};
use crate::actors::dispatch::WorkStatus;
use crate::domain::access::session::ContactRole;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{ContactId, TaxpayerId};
use crate::domain::mail_links::MailLinks;
use crate::domain::notice::{Notice, NoticeKind, NoticeScope, NoticeTopic};
use crate::domain::outage::{Observation, OperationCalls, Outage, OutageEdge};
use crate::store::accounts::contacts::{self, ContactChange, NewPerson};
use crate::store::lanes::LaneKind;
use crate::store::operations::mail_choices::{self, MailChoice};
use crate::store::operations::mails::{self, Mail, MailState};
use crate::store::operations::notices::{self, GatherDelays};
use crate::store::testing::{TestStore, add_taxpayer, claim_due, stores};
use office::Office;

const TAXPAYER: TaxpayerId = TaxpayerId(7);
const FROM: &str = "einvoice <robot@service.example>";
const OWNER: &str = "owner@mill.example";
const ACCOUNTANT: &str = "accountant@mill.example";
const READER: &str = "read_only@mill.example";
const INTEGRATOR: &str = "mill@integrator.example";

fn message_id(message: &str) -> String {
    let line = message.lines().find(|line| line.starts_with("Message-ID:"));
    line.unwrap().to_owned()
}

fn outage(at: Timestamp) -> Outage {
    let sightings = [OperationCalls {
        operation: "sign",
        held_since: Some(at),
        failed_at: Some(at),
        answered_at: None,
    }];
    let observation = Observation {
        id: Uuid::from_u128(1),
        now: at,
        quiet: SignedDuration::from_secs(60),
        sightings: &sightings,
        is_alive: None,
    };
    observation.current_outage(None).unwrap()
}

fn subjects(mails: &[Mail]) -> Vec<&str> {
    mails
        .iter()
        .map(|mail| mail.letter.subject.split(" (").next().unwrap())
        .collect()
}

#[tokio::test]
async fn a_day_with_refusals_an_outage_and_a_disabled_endpoint_makes_five_mails_at_most() {
    for test in stores().await {
        let office = Office::new(test).await;
        let start = outage(office.clock.now());
        for hour in (0..24).step_by(2) {
            office
                .tell(NoticeKind::InvoiceRejected, &format!("INV-{hour}"))
                .await;
            match hour {
                4 => office.tell_outage(&start, OutageEdge::Started).await,
                8 => {
                    let ended_at = Some(office.clock.now());
                    let ended = Outage {
                        ended_at,
                        ..start.clone()
                    };
                    office.tell_outage(&ended, OutageEdge::Ended).await;
                }
                14 => {
                    office
                        .tell(NoticeKind::EndpointDisabled, "https://mill.example")
                        .await;
                }
                _ => {}
            }
            office.pass(120).await;
        }
        let told = office.mails_to(OWNER).await;
        assert_eq!(
            subjects(&told),
            [
                "The authority rejected invoice INV-0",
                "The tax authority does not answer",
                "The tax authority works again",
                "6 invoices were rejected or failed",
                "The webhook at https://mill.example is disabled",
            ]
        );
        for mail in office.mails().await {
            assert_eq!(mail.state, MailState::Sent);
            for part in ["What happened", "What to do", "https://service.example/"] {
                assert!(mail.letter.text.contains(part), "{}", mail.letter.text);
            }
        }
        assert_eq!(
            subjects(&office.mails_to(ACCOUNTANT).await).len(),
            4,
            "no webhooks"
        );
        assert_eq!(subjects(&office.mails_to(READER).await).len(), 0);
        assert_eq!(
            subjects(&office.mails_to(INTEGRATOR).await),
            [
                "The tax authority does not answer",
                "The tax authority works again",
                "The webhook at https://mill.example of 7, TIN 7 is disabled",
            ]
        );
        office.pass(60).await;
        let last = office.mails_to(OWNER).await.pop().unwrap();
        assert!(
            last.letter.subject.starts_with("5 invoices"),
            "{}",
            last.letter.subject
        );
        assert_eq!(office.message_ids().len(), office.mails().await.len());
        assert!(!office.turn().await, "nothing is left");
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn who_snoozes_or_ends_a_topic_gets_no_mail_about_it_and_others_do() {
    for test in stores().await {
        let office = Office::new(test).await;
        let store = &office.test.store;
        let people = contacts::owned_by(store, TAXPAYER).await.unwrap();
        let owner = people
            .iter()
            .find(|one| one.role == ContactRole::Owner)
            .unwrap();
        let owner = format!("contact/7/{}", owner.contact.id).parse().unwrap();
        let until = office.clock.now() + SignedDuration::from_hours(24);
        let choices = [
            (NoticeTopic::Invoices, MailChoice::MutedUntil(until)),
            (NoticeTopic::Webhook, MailChoice::Never),
        ];
        mail_choices::set_choices(store, owner, &choices)
            .await
            .unwrap();
        let kept = mail_choices::owned_by(store, owner, office.clock.now())
            .await
            .unwrap();
        assert_eq!(kept, choices.into_iter().collect());
        let causes = [
            NoticeKind::InvoiceRejected,
            NoticeKind::EndpointDisabled,
            NoticeKind::KeyChanged,
        ];
        for kind in causes {
            office.tell(kind, "X").await;
        }
        office.pass(30).await;
        assert_eq!(
            subjects(&office.mails_to(OWNER).await),
            ["X"],
            "security is always told"
        );
        let told = office.mails_to(ACCOUNTANT).await;
        assert_eq!(subjects(&told), ["The authority rejected invoice X"]);
        let stop = told[0].unsubscribe.as_deref().unwrap();
        assert!(
            stop.starts_with("https://service.example/sign-in/unsubscribe/contact-7-"),
            "{stop}"
        );
        office.pass(24 * 60).await;
        for kind in causes {
            office.tell(kind, "Y").await;
        }
        office.pass(30).await;
        let told = office.mails_to(OWNER).await;
        assert_eq!(
            subjects(&told),
            ["X", "Y", "The authority rejected invoice Y"]
        );
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn what_was_sent_before_a_crash_is_sent_again_under_the_same_id() {
    for test in stores().await {
        let office = Office::new(test).await;
        office
            .tell(NoticeKind::KeyChanged, "An API key was created")
            .await;
        // The process dies after it has taken the notices, and before its commit.
        let groups = notices::due_groups(
            &office.test.store,
            office.clock.now(),
            office.mailer.policy.gather,
        );
        let group = groups.await.unwrap()[0];
        let tx = office.test.store.begin().await.unwrap();
        assert_eq!(
            notices::take_notices(&tx, group, office.clock.now())
                .await
                .unwrap()
                .len(),
            1
        );
        tx.rollback().await.unwrap();
        // Another one dies after the mail is stored, and a third one after the mail was taken.
        let lease = claim_lane(&office).await;
        office
            .mailer
            .write_notice_mails(&lease, group)
            .await
            .unwrap();
        let stored = office.mails_to(OWNER).await;
        assert_eq!((stored.len(), stored[0].state), (1, MailState::Waiting));
        office.mailer.transport.send(&stored[0]).await.unwrap();
        let sent = office.message_ids();
        office.mailer.send_due(&lease).await.unwrap();
        assert_eq!(office.message_ids(), sent);
        assert_eq!(office.mails_to(OWNER).await[0].state, MailState::Sent);
        office.test.store.close().await;
    }
}

async fn claim_lane(office: &Office) -> crate::store::lanes::Lease {
    office.mailer.wake_due_lanes().await.unwrap();
    let lease = Duration::from_secs(30);
    let store = &office.test.store;
    claim_due(store, LaneKind::Mail, "one", lease, 1)
        .await
        .unwrap()
        .remove(0)
}

#[tokio::test]
async fn a_replica_that_lost_the_lane_sends_nothing_more() {
    for test in stores().await {
        let office = Office::new(test).await;
        office
            .tell(NoticeKind::KeyChanged, "An API key was created")
            .await;
        let store = &office.test.store;
        office.mailer.wake_due_lanes().await.unwrap();
        let lost = claim_due(store, LaneKind::Mail, "one", Duration::ZERO, 1)
            .await
            .unwrap();
        // In the moment in which a lease ends, the lane is not free yet.
        let mut taken = Vec::new();
        while taken.is_empty() {
            taken = claim_due(store, LaneKind::Mail, "two", Duration::from_secs(30), 1)
                .await
                .unwrap();
        }
        assert!(office.mailer.work(&lost[0]).await.is_err());
        assert_eq!(office.mails().await.len(), 0);
        office.test.store.close().await;
    }
}
