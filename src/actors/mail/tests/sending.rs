//! Tests of what becomes of mails on their way: servers that refuse or are gone, chats that are silent, and people who
//! are no longer told.

use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::domain::access::invitation::InvitationToken;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::store::accounts::invitations;
use crate::store::operations::chat_hooks;

/// Answers as an SMTP server that has no time for the first mail. Returns the message that it took.
async fn serve_mail(mut stream: TcpStream, refusals: &AtomicUsize, status: &str) -> Option<String> {
    let (read, mut write) = stream.split();
    let mut lines = BufReader::new(read).lines();
    write
        .write_all(b"220 mail.example ready\r\n")
        .await
        .unwrap();
    let mut message: Option<String> = None;
    while let Some(line) = lines.next_line().await.unwrap() {
        let word = line.split(' ').next().unwrap_or_default().to_uppercase();
        let answer = match word.as_str() {
            "EHLO" => "250 mail.example".to_owned(),
            "MAIL" if refusals.load(Ordering::SeqCst) > 0 => {
                refusals.fetch_sub(1, Ordering::SeqCst);
                format!("{status} not now")
            }
            "DATA" => {
                write.write_all(b"354 go on\r\n").await.unwrap();
                let mut text = String::new();
                while let Some(line) = lines.next_line().await.unwrap().filter(|line| line != ".") {
                    text.push_str(&line);
                    text.push('\n');
                }
                message = Some(text);
                "250 taken".to_owned()
            }
            "QUIT" => "221 bye".to_owned(),
            _ => "250 fine".to_owned(),
        };
        write
            .write_all(format!("{answer}\r\n").as_bytes())
            .await
            .unwrap();
        if word == "QUIT" {
            break;
        }
    }
    message
}

#[tokio::test]
async fn a_server_that_has_no_time_is_asked_again_and_one_that_refuses_is_not() {
    for (status, expected) in [("451", MailState::Sent), ("550", MailState::Failed)] {
        for test in stores().await {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("smtp://{}", listener.local_addr().unwrap());
            let transport = MailTransport::smtp(&url.into(), FROM).unwrap();
            let office = Office::with(test, tempfile::tempdir().unwrap(), transport).await;
            let (taken, mut messages) = tokio::sync::mpsc::unbounded_channel();
            let server = tokio::spawn(async move {
                let refusals = AtomicUsize::new(1);
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    if let Some(message) = serve_mail(stream, &refusals, status).await {
                        taken.send(message).unwrap();
                    }
                }
            });
            office
                .tell(NoticeKind::KeyChanged, "An API key was created")
                .await;
            office.turn().await;
            let first = office.mails_to(OWNER).await.remove(0);
            assert_eq!(first.attempts, 1);
            assert!(first.last_error.unwrap().contains("not now"));
            assert!(!office.turn().await, "it waits for its next attempt");
            office.pass(5).await;
            let mail = office.mails_to(OWNER).await.remove(0);
            assert_eq!((mail.state, mail.id == first.id), (expected, true));
            if expected == MailState::Sent {
                let message = messages.recv().await.unwrap();
                assert_eq!(
                    message_id(&message),
                    format!("Message-ID: <{}@service.example>", mail.id)
                );
                for header in ["Auto-Submitted: auto-generated", "To: owner@mill.example"] {
                    assert!(message.contains(header), "{message}");
                }
            }
            assert!(messages.try_recv().is_err());
            server.abort();
            office.test.store.close().await;
        }
    }
}

/// Starts a server that takes every mail, and returns its URL.
async fn start_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let refusals = AtomicUsize::new(0);
                serve_mail(stream, &refusals, "250").await
            });
        }
    });
    url
}

/// Returns the URL of a server that is not there.
async fn gone_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("smtp://{}", listener.local_addr().unwrap())
}

const OTHER: &str = "other@mill.example";

#[tokio::test]
async fn an_address_that_the_server_does_not_take_holds_back_no_other_mail() {
    for test in stores().await {
        let transport = MailTransport::smtp(&start_server().await.into(), FROM).unwrap();
        let office = Office::with(test, tempfile::tempdir().unwrap(), transport).await;
        let odd = "öwner@mill.example";
        for email in [odd, OTHER] {
            office.add_person(email, ContactRole::Owner).await;
        }
        office
            .tell(NoticeKind::KeyChanged, "An API key was created")
            .await;
        office.turn().await;
        let held = office.mails_to(odd).await.remove(0);
        assert_eq!((held.state, held.attempts), (MailState::Waiting, 1));
        let error = held.last_error.unwrap();
        assert!(error.contains("SMTPUTF8"), "{error}");
        for email in [OWNER, OTHER] {
            let mail = office.mails_to(email).await.remove(0);
            assert_eq!(mail.state, MailState::Sent, "{email}");
        }
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn a_mail_that_was_not_tried_counts_no_attempt() {
    for test in stores().await {
        let transport = MailTransport::smtp(&gone_server().await.into(), FROM).unwrap();
        let office = Office::with(test, tempfile::tempdir().unwrap(), transport).await;
        office.add_person(OTHER, ContactRole::Owner).await;
        office
            .tell(NoticeKind::KeyChanged, "An API key was created")
            .await;
        office.turn().await;
        let tried = office.mails_to(OWNER).await.remove(0);
        assert_eq!((tried.state, tried.attempts), (MailState::Waiting, 1));
        assert!(tried.last_error.is_some());
        let waiting = office.mails_to(OTHER).await.remove(0);
        assert_eq!((waiting.state, waiting.attempts), (MailState::Waiting, 0));
        assert_eq!(waiting.last_error, None);
        assert!(!office.turn().await, "both wait");
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn a_mail_that_waited_goes_only_to_who_is_still_told() {
    let of_person = format!("WHERE email = '{ACCOUNTANT}'");
    let changes = [
        (format!("DELETE FROM contacts {of_person}"), false),
        (
            format!("UPDATE contacts SET disabled_at = 1 {of_person}"),
            false,
        ),
        (
            format!("UPDATE contacts SET role = 'read_only' {of_person}"),
            false,
        ),
        (
            format!("UPDATE contacts SET role = 'owner' {of_person}"),
            true,
        ),
        (
            format!("UPDATE contacts SET email = 'new@mill.example' {of_person}"),
            false,
        ),
        (
            format!("UPDATE contacts SET password_hash = NULL {of_person}"),
            false,
        ),
        (
            format!(
                "INSERT INTO mail_choices (person, topic, until) SELECT 'contact/7/' || CAST(id AS TEXT), \
                 'invoices', 9223372036854775807 FROM contacts {of_person}"
            ),
            false,
        ),
    ];
    for (change, is_told) in changes {
        for test in stores().await {
            let gone = MailTransport::smtp(&gone_server().await.into(), FROM).unwrap();
            let mut office = Office::with(test, tempfile::tempdir().unwrap(), gone).await;
            office.tell(NoticeKind::InvoiceRejected, "X").await;
            office.pass(15).await;
            office.execute(&change).await;
            let folder = office.folder.path().to_owned();
            office.mailer.transport = MailTransport::folder(folder, FROM).unwrap();
            office.pass(5).await;
            let mail = office.mails_to(ACCOUNTANT).await.remove(0);
            let expected = if is_told {
                (MailState::Sent, None)
            } else {
                (MailState::Failed, Some("no longer told"))
            };
            let found = (mail.state, mail.last_error.as_deref());
            assert_eq!(found, expected, "{change}");
            let mail = office.mails_to(OWNER).await.remove(0);
            assert_eq!(mail.state, MailState::Sent, "{change}");
            office.test.store.close().await;
        }
    }
}

/// Starts a chat that answers when so many posts have come, and returns its URL.
async fn start_chat(posts: usize) -> SecretString {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut streams = Vec::new();
        while streams.len() < posts {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0);
            }
            streams.push(stream);
        }
        for stream in &mut streams {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    });
    url.into()
}

#[tokio::test]
async fn chats_are_told_at_the_same_time_each_once_and_in_a_lane_of_their_own() {
    for test in stores().await {
        let office = Office::new(test).await;
        let store = &office.test.store;
        add_taxpayer(store, 8, 1).await;
        let url = start_chat(2).await;
        office.tell(NoticeKind::InvoiceRejected, "X").await;
        office.clock.advance(Duration::from_mins(15));
        let now = office.clock.now();
        for id in [TAXPAYER, TaxpayerId(8)] {
            let entry = AuditEntry::new(Actor::CommandLine, AuditAction::SetChat, &id, now);
            let entry = entry.for_taxpayer(id);
            chat_hooks::set_address(store, id, Some(&url), entry)
                .await
                .unwrap();
            office
                .tell_to(NoticeScope::Taxpayer(id), NoticeKind::KeyChanged, "X")
                .await;
        }
        office.turn().await;
        for mail in office.mails().await {
            let is_chat = mail.recipient.starts_with("chat/");
            let expected = if is_chat {
                MailState::Waiting
            } else {
                MailState::Sent
            };
            assert_eq!(mail.state, expected, "{}", mail.recipient);
        }
        office.mailer.wake_due_lanes().await.unwrap();
        let leases = claim_due(store, LaneKind::Mail, "one", Duration::from_secs(30), 2)
            .await
            .unwrap();
        let keys: Vec<_> = leases.iter().map(|lease| lease.key.as_str()).collect();
        assert_eq!(keys, ["chats"]);
        office.mailer.work(&leases[0]).await.unwrap();
        let states = async |chat: &str| {
            let mails = office.mails_to(chat).await;
            mails.iter().map(|mail| mail.state).collect::<Vec<_>>()
        };
        assert_eq!(
            states("chat/7").await,
            [MailState::Sent, MailState::Waiting]
        );
        assert_eq!(states("chat/8").await, [MailState::Sent]);
        office.test.store.close().await;
    }
}

/// A mail whose sending could not be recorded is sent again, with the same link.
#[tokio::test]
async fn a_mail_that_is_sent_again_brings_no_used_link_back() {
    for (kind, is_used) in [
        (NoticeKind::Invited, false),
        (NoticeKind::Invited, true),
        (NoticeKind::PasswordLost, false),
        (NoticeKind::PasswordLost, true),
    ] {
        for test in stores().await {
            let office = Office::new(test).await;
            let store = &office.test.store;
            let id = office.add_person(OTHER, ContactRole::Owner).await;
            office
                .execute("UPDATE contacts SET password_hash = 'x'")
                .await;
            let person = NoticeScope::Person(SessionOwner::Contact {
                taxpayer: TAXPAYER,
                id,
            });
            let scope = link_scope(kind, person);
            office.tell_to(scope, kind, OTHER).await;
            office.turn().await;
            let mut mails = office.mails_to(OTHER).await;
            let mail = mails.remove(0);
            assert_eq!((mail.state, mails.len()), (MailState::Sent, 0));
            office
                .execute("UPDATE mails SET state = 'waiting', attempts = 0, next_attempt_at = 0")
                .await;
            office.clock.advance(Duration::from_secs(40));
            let now = office.clock.now();
            let token = InvitationToken::new(office.mailer.links.invitation_secret(&mail.id));
            if is_used {
                let used = invitations::accept(store, &token, "hash", now).await;
                assert!(used.unwrap().is_some());
            }
            office.turn().await;
            let mut mails = office.mails_to(OTHER).await;
            mails.retain(|one| one.id == mail.id);
            let expected = if is_used {
                (MailState::Failed, Some("no longer told"))
            } else {
                (MailState::Sent, None)
            };
            let found = (mails[0].state, mails[0].last_error.as_deref());
            assert_eq!(found, expected, "{kind}");
            let open = invitations::find(store, &token, now).await.unwrap();
            assert_eq!(open.is_none(), is_used, "{kind}");
            office.test.store.close().await;
        }
    }
}

/// Returns the scope of a notice with a link to a person: an owner invites the person, and a stranger asks at the
/// sign-in.
fn link_scope(kind: NoticeKind, person: NoticeScope) -> NoticeScope {
    match kind {
        NoticeKind::Invited => person,
        _ => NoticeScope::SignIn,
    }
}

/// Asks for links to a person, as an owner who invites or as a stranger at the sign-in. Each cause comes so many times,
/// and then the person has so many mails.
async fn ask_for_links(asks: &[(NoticeKind, usize, usize)]) {
    for test in stores().await {
        let office = Office::new(test).await;
        let id = office.add_person(OTHER, ContactRole::ReadOnly).await;
        office
            .execute("UPDATE contacts SET password_hash = 'x'")
            .await;
        let person = NoticeScope::Person(SessionOwner::Contact {
            taxpayer: TAXPAYER,
            id,
        });
        for (kind, times, mails) in asks {
            let scope = link_scope(*kind, person);
            for _ in 0..*times {
                office.tell_to(scope, *kind, OTHER).await;
                office.turn().await;
            }
            assert_eq!(office.mails_to(OTHER).await.len(), *mails, "{kind}");
        }
        office.test.store.close().await;
    }
}

#[tokio::test]
async fn strangers_who_ask_for_links_use_up_no_invitation() {
    ask_for_links(&[
        (NoticeKind::PasswordLost, 5, 3),
        (NoticeKind::Invited, 12, 13),
        (NoticeKind::PasswordLost, 1, 13),
    ])
    .await;
}

#[tokio::test]
async fn owners_who_invite_use_up_no_link_for_a_lost_password() {
    ask_for_links(&[
        (NoticeKind::Invited, 4, 4),
        (NoticeKind::PasswordLost, 5, 7),
        (NoticeKind::Invited, 1, 8),
    ])
    .await;
}
