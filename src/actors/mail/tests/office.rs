//! A deployment whose mails the tests look at.

use super::*;

/// A deployment with one taxpayer, its people and its integrator.
pub(super) struct Office {
    pub(super) test: TestStore,
    pub(super) mailer: Mailer,
    pub(super) clock: Arc<MockClock>,
    pub(super) folder: TempDir,
}

impl Office {
    pub(super) async fn new(test: TestStore) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let transport = MailTransport::folder(folder.path().to_owned(), FROM).unwrap();
        Self::with(test, folder, transport).await
    }

    pub(super) async fn with(test: TestStore, folder: TempDir, transport: MailTransport) -> Self {
        let clock = Arc::new(MockClock::at(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ));
        let policy = AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]);
        let mailer = Mailer {
            store: test.store.clone(),
            clock: clock.clone(),
            policy: MailPolicy {
                gather: GatherDelays {
                    gather: SignedDuration::from_mins(15),
                    repeat: SignedDuration::from_hours(12),
                },
                deadline_before: SignedDuration::from_hours(4),
            },
            origin: "https://service.example".to_owned(),
            links: MailLinks::new("a secret".to_owned().into()),
            transport,
            chat: GuardedClient::new(policy, Duration::from_secs(10), 1, "test").unwrap(),
        };
        let office = Self {
            test,
            mailer,
            clock,
            folder,
        };
        office.add_people().await;
        office
    }

    pub(super) async fn add_people(&self) {
        let store = &self.test.store;
        add_taxpayer(store, TAXPAYER.0, 1).await;
        for role in ContactRole::ALL {
            self.add_person(&format!("{role}@mill.example"), *role)
                .await;
        }
        self.execute(&format!(
            "INSERT INTO integrators (id, name, email, email_key, password_hash, created_at) VALUES (1, 'One', \
             '{INTEGRATOR}', '{INTEGRATOR}', 'x', 0)"
        ))
        .await;
        self.add_invoice("a", "draft", "PENDING", false).await;
    }

    /// Adds a person who has a password.
    pub(super) async fn add_person(&self, email: &str, role: ContactRole) -> ContactId {
        let change = ContactChange {
            taxpayer: TAXPAYER,
            by: Actor::CommandLine,
            now: self.clock.now(),
        };
        let person = NewPerson {
            first_name: "Ada".into(),
            last_name: "Obi".into(),
            email: email.to_owned(),
            role,
        };
        let added = contacts::add(&self.test.store, change, &person).await;
        let id = added.unwrap().unwrap();
        self.execute(&format!(
            "UPDATE contacts SET password_hash = 'x' WHERE id = {id}"
        ))
        .await;
        id
    }

    pub(super) async fn add_invoice(
        &self,
        number: &str,
        status: &str,
        authority: &str,
        is_signed: bool,
    ) {
        self.execute(&format!(
            "INSERT INTO invoices (taxpayer_id, id, irn, irn_key, invoice_no, category, invoice_type, invoice_date, \
             currency, customer, lines, status, payment_status, payable, paid, authority_status, qr_code, signed, \
             extras, content_digest, created_at, updated_at) SELECT 7, 1 + COUNT(*), '{number}', '{number}', \
             '{number}', 'B2B', '380', '2027-01-01', 'NGN', '{{}}', '[]', '{status}', 'PENDING', '1', '0', \
             '{authority}', '', {is_signed}, '{{}}', '', {}, 1 FROM invoices",
            self.clock.now().as_microsecond()
        ))
        .await;
    }

    /// Adds a run about the invoice `A-{id}`, whose deadline is so many minutes away.
    pub(super) async fn add_run(&self, id: &str, state: &str, operation: &str, minutes: i64) {
        let deadline = self.clock.now() + SignedDuration::from_mins(minutes);
        self.execute(&format!(
            "INSERT INTO pipeline_runs (taxpayer_id, id, operation, irn, irn_key, state, document, digest, done, \
             attempt, created_at, updated_at, deadline_at) VALUES (7, '{id}', '{operation}', \
             'A-{id}-94AD90FB-20260101', '{id}', '{state}', '{{}}', '', '[]', 0, 0, 0, {})",
            deadline.as_microsecond()
        ))
        .await;
    }

    pub(super) async fn execute(&self, sql: &str) {
        let tx = self.test.store.begin().await.unwrap();
        tx.execute_unprepared(sql).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(super) async fn tell(&self, kind: NoticeKind, about: &str) {
        self.tell_to(NoticeScope::Taxpayer(TAXPAYER), kind, about)
            .await;
    }

    pub(super) async fn tell_to(&self, scope: NoticeScope, kind: NoticeKind, about: &str) {
        let notice = Notice::new(scope, kind, self.clock.now());
        let tx = self.test.store.begin().await.unwrap();
        notices::add(&tx, &[notice.with_subject(about, "because")])
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    pub(super) async fn tell_outage(&self, outage: &Outage, edge: OutageEdge) {
        let tx = self.test.store.begin().await.unwrap();
        notices::add_outage_notices(&tx, outage, edge, self.clock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// Does what is due, as a process does that looks now. Returns false if nothing was due.
    pub(super) async fn turn(&self) -> bool {
        self.mailer.wake_due_lanes().await.unwrap();
        let lease = Duration::from_secs(30);
        let store = &self.test.store;
        let leases = claim_due(store, LaneKind::Mail, "one", lease, 2)
            .await
            .unwrap();
        for lease in &leases {
            let done = self.mailer.work(lease).await.unwrap();
            assert!(matches!(done, WorkStatus::Released));
        }
        !leases.is_empty()
    }

    pub(super) async fn pass(&self, minutes: u64) {
        for _ in 0..minutes / 5 {
            self.clock.advance(Duration::from_mins(5));
            self.turn().await;
        }
    }

    pub(super) async fn mails(&self) -> Vec<Mail> {
        let all = Page {
            number: 1,
            per_page: 500,
        };
        let (mut mails, _) = mails::page(&self.test.store, all).await.unwrap();
        mails.reverse();
        mails
    }

    pub(super) async fn mails_to(&self, recipient: &str) -> Vec<Mail> {
        let mut mails = self.mails().await;
        mails.retain(|mail| mail.recipient == recipient);
        mails
    }

    /// Returns the ids of the messages in the folder.
    pub(super) fn message_ids(&self) -> BTreeSet<String> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        files
            .map(|file| {
                let text = fs::read_to_string(file.unwrap().path()).unwrap();
                message_id(&text)
            })
            .collect()
    }
}
