//! Invitations: one-time links with which a person chooses a password. Creating a link leaves the current password
//! valid, so that a link that is lost, or created by mistake, locks nobody out. Using a link ends the current password,
//! all sessions and the link itself. A link also ends when whoever made it loses the right to make links, or gets a new
//! password.

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::{SignedDuration, Timestamp};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::access::invitation::{INVITATION_LIFETIME, InvitationToken};
use crate::domain::access::session::{Person, SessionOwner};
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::notice::{Notice, NoticeKind, NoticeScope};
use crate::domain::outage::CLOCK_DIFFERENCE_MAX;
use crate::store::Store;
use crate::store::accounts::invitation_row::{Column, Entity, Model};
use crate::store::accounts::person_accounts::LockedAccount;
use crate::store::accounts::{ended_invitations, people, person_accounts, sessions};
use crate::store::idempotency::{self, KeyEntry};
use crate::store::operations::{audit, audit_row, notices};

/// The actions with which a person gets a new password. A link that was requested before such an action is not needed
/// any more.
const PASSWORD_CHOICES: [AuditAction; 2] =
    [AuditAction::AcceptInvitation, AuditAction::ChangePassword];

/// The maximum number of invitations that the people of one account have mailed within `MAILS_PERIOD`. Whoever is
/// invited is a stranger to this service, and might not want its mails.
const MAILS_PER_ACCOUNT_MAX: u64 = 50;
/// The maximum number of such mails for all accounts of one integrator.
const MAILS_PER_INTEGRATOR_MAX: u64 = 500;
const MAILS_PERIOD: SignedDuration = SignedDuration::from_hours(24);

/// An invitation that is not stored yet.
#[derive(Debug)]
pub struct NewInvitation<'a> {
    pub owner: SessionOwner,
    pub token: &'a InvitationToken,
    pub by: Actor,
    pub reason: Option<String>,
    /// The idempotency claim of the request. A link is secret, so no response is stored for the key.
    pub claim: Option<IdempotencyClaim>,
    pub now: Timestamp,
}

/// Stores an invitation and ends the person's previous one. Returns the time at which the new one expires; `None` if
/// there is no such person, or if the maker of the invitation has meanwhile lost the right to make links. Fails with
/// `Duplicate` if another request has already stored the idempotency key of the claim.
pub async fn add(store: &Store, new: NewInvitation<'_>) -> Result<Option<Timestamp>, StoreError> {
    add_unless_outdated(store, new, None).await
}

/// Like `add`, for a link in a mail that was written at `written_at` and may have been sent before. Returns `None` also
/// if the account is disabled, or if the person has chosen a password or got another link since. Otherwise, sending a
/// mail again would make the link valid again after the person has used it, or would end the newer link.
pub async fn add_for_mailed_link(
    store: &Store,
    new: NewInvitation<'_>,
    written_at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    add_unless_outdated(store, new, Some(written_at)).await
}

async fn add_unless_outdated(
    store: &Store,
    new: NewInvitation<'_>,
    written_at: Option<Timestamp>,
) -> Result<Option<Timestamp>, StoreError> {
    let NewInvitation {
        owner,
        token,
        by,
        reason,
        claim,
        now,
    } = new;
    let expires_at = now
        .saturating_add(INVITATION_LIFETIME)
        .unwrap_or(Timestamp::MAX);
    let tx = store.begin().await?;
    let Some(account) = lock_invited_person(&tx, owner, by).await? else {
        return Ok(None);
    };
    // Using a link also locks the account. So either the use comes first, and its effect is seen here, or it comes
    // later and sees the new link.
    if let Some(written_at) = written_at
        && (account.is_disabled()
            || audit::has_action_since(&tx, owner, &PASSWORD_CHOICES, written_at).await?
            || has_newer_link(&tx, owner, token, written_at).await?)
    {
        return Ok(None);
    }
    ended_invitations::delete_owned_and_expired(&tx, owner, now).await?;
    let row = Model {
        hash: token.hash(),
        kind: owner.kind().to_string(),
        account_id: owner.id(),
        taxpayer_id: owner.taxpayer().map(|taxpayer| taxpayer.0),
        created_at: now.as_microsecond(),
        expires_at: expires_at.as_microsecond(),
    };
    Entity::insert(row.into_active_model())
        .exec_without_returning(&tx)
        .await?;
    let entry = sessions::audit_entry(by, owner, AuditAction::MakeInvitation, now);
    let entry = AuditEntry { reason, ..entry };
    audit::append(&tx, &[entry]).await?;
    if let Some(claim) = claim {
        let key = KeyEntry {
            claim,
            command_id: None,
            answer: None,
        };
        idempotency::store_keys(store, &tx, &[&key], now).await?;
    }
    tx.commit().await?;
    Ok(Some(expires_at))
}

/// Locks the accounts of the invited person and of the maker of the link, and returns that of the person. A change that
/// ends the maker's right to make links also locks the maker's account. So it either comes first and is seen here, or
/// it comes later and ends the link. `None` if one of the accounts does not exist, or if the maker may not make links
/// any more.
async fn lock_invited_person(
    tx: &Transaction,
    owner: SessionOwner,
    by: Actor,
) -> Result<Option<LockedAccount>, StoreError> {
    let maker = link_maker(by, owner);
    let mut accounts = vec![owner];
    accounts.extend(maker.filter(|maker| *maker != owner));
    // Every call locks accounts in this order, so that two people who invite each other cannot deadlock.
    accounts.sort_by_key(|account| (account.kind().as_str(), account.id()));
    let mut invited = None;
    for account in accounts {
        let Some(locked) = person_accounts::lock_person(tx, account).await? else {
            return Ok(None);
        };
        if maker == Some(account) && !locked.may_invite() {
            return Ok(None);
        }
        if account == owner {
            invited = Some(locked);
        }
    }
    Ok(invited)
}

/// Returns the account of the person who makes a link for `owner`; `None` if no person makes it, but for example the
/// command line. A contact person invites only people of its own account.
fn link_maker(by: Actor, owner: SessionOwner) -> Option<SessionOwner> {
    match by {
        Actor::Operator(id) => Some(SessionOwner::Operator(id)),
        Actor::Integrator(id) => Some(SessionOwner::Integrator(id)),
        Actor::Contact(id) => owner
            .taxpayer()
            .map(|taxpayer| SessionOwner::Contact { taxpayer, id }),
        Actor::TaxpayerKey(_) | Actor::CommandLine | Actor::Authority | Actor::Service => None,
    }
}

/// True if the person has got another link since this time. A link that is only slightly newer does not count, because
/// the clocks of two replicas may differ by that much.
async fn has_newer_link(
    tx: &Transaction,
    owner: SessionOwner,
    token: &InvitationToken,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let since = since
        .saturating_add(CLOCK_DIFFERENCE_MAX)
        .unwrap_or(Timestamp::MAX);
    let newer = Entity::find()
        .filter(Column::Kind.eq(owner.kind().as_str()))
        .filter(Column::AccountId.eq(owner.id()))
        .filter(Column::Hash.ne(token.hash()))
        .filter(Column::CreatedAt.gt(since.as_microsecond()));
    Ok(newer.one(tx).await?.is_some())
}

/// Records that a contact person is invited by mail, and adds the notice from which the mail is written.
pub async fn add_mail(
    store: &Store,
    person: SessionOwner,
    by: Actor,
    integrator: Option<IntegratorId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let entry = sessions::audit_entry(by, person, AuditAction::MailInvitation, now);
    let entry = AuditEntry {
        integrator_id: integrator.or(entry.integrator_id),
        ..entry
    };
    let notice = Notice::new(NoticeScope::Person(person), NoticeKind::Invited, now);
    let tx = store.begin().await?;
    audit::append(&tx, &[entry]).await?;
    notices::add(&tx, &[notice]).await?;
    tx.commit().await
}

/// Returns the time from which the people of an account may have an invitation mailed again; `None` if they may now.
/// Invitations that are mailed at the same moment may exceed the maximum.
pub async fn find_next_mail_time(
    store: &Store,
    taxpayer: TaxpayerId,
    integrator: Option<IntegratorId>,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    // With the plus signs, SQLite reads the mails of a day instead of all entries of the account or the integrator.
    let by_account = Expr::cust("+taxpayer_id").eq(taxpayer.0);
    let next = find_period_end(store, by_account, MAILS_PER_ACCOUNT_MAX, now).await?;
    let Some(integrator) = integrator else {
        return Ok(next);
    };
    let by_integrator = Expr::cust("+integrator_id").eq(integrator.0);
    let other = find_period_end(store, by_integrator, MAILS_PER_INTEGRATOR_MAX, now).await?;
    Ok(next.max(other))
}

/// Returns the time at which the oldest of the last `max` mailed invitations is `MAILS_PERIOD` ago; `None` if fewer were
/// mailed within this period. `whose` selects the audit entries that count.
async fn find_period_end(
    store: &Store,
    whose: Expr,
    max: u64,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let since = now - MAILS_PERIOD;
    // The id of an entry begins with its time in milliseconds, so the index of actions leads to the newest ones.
    let millis = u128::try_from(since.as_millisecond()).unwrap_or_default();
    let first_id = Uuid::from_u128(millis << 80);
    let oldest: Option<i64> = audit_row::Entity::find()
        .select_only()
        .column(audit_row::Column::At)
        .filter(audit_row::Column::Action.eq(AuditAction::MailInvitation.as_str()))
        .filter(audit_row::Column::Id.gte(first_id.to_string()))
        .filter(audit_row::Column::At.gt(since.as_microsecond()))
        .filter(whose)
        .order_by_desc(audit_row::Column::Id)
        .offset(max - 1)
        .into_tuple()
        .one(store.reader())
        .await?;
    let Some(oldest) = oldest else {
        return Ok(None);
    };
    let at = RowRef {
        table: "audit",
        id: AuditAction::MailInvitation,
    };
    let end = at.moment(oldest)?.saturating_add(MAILS_PERIOD);
    Ok(Some(end.unwrap_or(Timestamp::MAX)))
}

/// Finds the person whom a link invites. `None` if the link was used or replaced, has expired or never existed, or if
/// the person was removed.
pub async fn find(
    store: &Store,
    token: &InvitationToken,
    now: Timestamp,
) -> Result<Option<Person>, StoreError> {
    let row = Entity::find_by_id(token.hash()).one(store.reader()).await?;
    let Some(row) = row.filter(|row| row.expires_at > now.as_microsecond()) else {
        return Ok(None);
    };
    person_accounts::find_person(store, row.owner()?).await
}

/// Uses a link: sets the password with this hash, and ends the link, all sessions of the person, and the links that the
/// person made for others. `None` if the link is no longer valid. If two requests use a link at the same time, one of
/// them gets `None`.
pub async fn accept(
    store: &Store,
    token: &InvitationToken,
    password_hash: &str,
    now: Timestamp,
) -> Result<Option<SessionOwner>, StoreError> {
    let tx = store.begin().await?;
    let Some(row) = Entity::find_by_id(token.hash()).one(&tx).await? else {
        return Ok(None);
    };
    let owner = row.owner()?;
    // Locks the person's row before the links. `add` locks in the same order, so the two cannot deadlock.
    if person_accounts::lock_person(&tx, owner).await?.is_none() {
        return Ok(None);
    }
    ended_invitations::lock_owned_and_made_by(&tx, owner, now).await?;
    let used =
        Entity::delete_by_id(token.hash()).filter(Column::ExpiresAt.gt(now.as_microsecond()));
    if used.exec(&tx).await?.rows_affected == 0
        || !people::write_password(&tx, owner, password_hash, now).await?
    {
        return Ok(None);
    }
    ended_invitations::delete_made_by(&tx, owner, now).await?;
    sessions::close_all(&tx, owner).await?;
    audit::append(
        &tx,
        &[sessions::audit_entry_by_owner(
            owner,
            AuditAction::AcceptInvitation,
            now,
        )],
    )
    .await?;
    tx.commit().await?;
    Ok(Some(owner))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::access::api_key::KeyOwner;
    use crate::domain::access::caller::KeyKind;
    use crate::domain::access::session::ContactRole;
    use crate::domain::kernel::ids::ContactId;
    use crate::store::accounts::contacts::{self, ContactChange, NewPerson};
    use crate::store::accounts::people::PasswordChange;
    use crate::store::testing::{TestStore, stores};

    const CHANGE: ContactChange = ContactChange {
        taxpayer: TaxpayerId(1),
        by: Actor::CommandLine,
        now: Timestamp::UNIX_EPOCH,
    };

    async fn person(test: &TestStore, name: &str) -> SessionOwner {
        let new = NewPerson {
            first_name: name.into(),
            last_name: "Obi".into(),
            email: format!("{name}@example.com"),
            role: ContactRole::Owner,
        };
        let id = contacts::add(&test.store, CHANGE, &new).await.unwrap();
        let id = id.unwrap();
        SessionOwner::Contact {
            taxpayer: TaxpayerId(1),
            id,
        }
    }

    async fn invite(test: &TestStore, owner: SessionOwner, byte: u8) -> InvitationToken {
        invite_by(test, Actor::CommandLine, owner, byte).await
    }

    async fn invite_by(
        test: &TestStore,
        by: Actor,
        owner: SessionOwner,
        byte: u8,
    ) -> InvitationToken {
        let token = InvitationToken::new([byte; 32]);
        let new = NewInvitation {
            owner,
            token: &token,
            by,
            reason: None,
            claim: None,
            now: CHANGE.now,
        };
        let expires_at = add(&test.store, new).await.unwrap().unwrap();
        assert_eq!(expires_at, CHANGE.now + INVITATION_LIFETIME);
        token
    }

    async fn hash_of(test: &TestStore, owner: SessionOwner) -> Option<String> {
        people::password_hash(&test.store, owner).await.unwrap()
    }

    async fn is_open(test: &TestStore, token: &InvitationToken, now: Timestamp) -> bool {
        find(&test.store, token, now).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn a_request_whose_key_is_taken_makes_no_link_and_ends_none() {
        for test in stores().await {
            let owner = person(&test, "Ada").await;
            let tokens = [1, 2].map(|byte| InvitationToken::new([byte; 32]));
            let key_owner = KeyOwner {
                kind: KeyKind::Integrator,
                id: 7,
            };
            let claim = IdempotencyClaim::new(
                key_owner,
                "key",
                &[b"POST"],
                CHANGE.now + Duration::from_hours(1),
            );
            let mut made = Vec::new();
            for token in &tokens {
                let new = NewInvitation {
                    owner,
                    token,
                    by: Actor::CommandLine,
                    reason: None,
                    claim: Some(claim.clone()),
                    now: CHANGE.now,
                };
                made.push(add(&test.store, new).await);
            }
            assert!(
                matches!(made[..], [Ok(Some(_)), Err(StoreError::Duplicate(_))]),
                "{made:?}"
            );
            let kept = idempotency::find(&test.store, &claim, CHANGE.now).await;
            assert_eq!(kept.unwrap().unwrap().answer, None);
            assert!(is_open(&test, &tokens[0], CHANGE.now).await);
            assert!(!is_open(&test, &tokens[1], CHANGE.now).await);
        }
    }

    #[tokio::test]
    async fn a_link_gives_one_person_a_password_once() {
        for test in stores().await {
            let one = person(&test, "ada").await;
            let other = person(&test, "bola").await;
            let first = invite(&test, one, 1).await;
            let token = invite(&test, one, 2).await;
            assert!(
                !is_open(&test, &first, CHANGE.now).await,
                "a new link replaces the one before"
            );
            let found = find(&test.store, &token, CHANGE.now)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                (found.owner, found.email.as_str()),
                (one, "ada@example.com")
            );
            assert_eq!(
                hash_of(&test, one).await,
                None,
                "a link alone changes nothing"
            );
            for (token, expected) in [(&first, None), (&token, Some(one)), (&token, None)] {
                assert_eq!(
                    accept(&test.store, token, "hash", CHANGE.now)
                        .await
                        .unwrap(),
                    expected
                );
            }
            assert_eq!(
                (hash_of(&test, one).await, hash_of(&test, other).await),
                (Some("hash".into()), None)
            );
        }
    }

    #[tokio::test]
    async fn a_mail_that_waited_ends_no_newer_link() {
        let minutes = |count: i64| CHANGE.now + SignedDuration::from_mins(count);
        // The minute in which another link is made, whether the mail was tried before it, and whether its link is
        // valid.
        for (made, is_tried, is_valid) in [
            (-5, false, true),
            (0, false, true),
            (5, false, false),
            (5, true, false),
        ] {
            for test in stores().await {
                let owner = person(&test, "ada").await;
                let [mailed, other] = [1, 2].map(|byte| InvitationToken::new([byte; 32]));
                let link = |token, now| NewInvitation {
                    owner,
                    token,
                    by: Actor::Service,
                    reason: None,
                    claim: None,
                    now,
                };
                if is_tried {
                    let tried = link(&mailed, minutes(1));
                    let tried = add_for_mailed_link(&test.store, tried, CHANGE.now).await;
                    assert!(tried.unwrap().is_some());
                }
                add(&test.store, link(&other, minutes(made))).await.unwrap();
                for minute in [10, 20] {
                    let now = minutes(minute);
                    let again =
                        add_for_mailed_link(&test.store, link(&mailed, now), CHANGE.now).await;
                    assert_eq!(again.unwrap().is_some(), is_valid, "{made} {is_tried}");
                    for (token, expected) in [(&mailed, is_valid), (&other, !is_valid)] {
                        let open = is_open(&test, token, now).await;
                        assert_eq!(open, expected, "{made} {is_tried}");
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn a_link_ends_when_its_maker_may_make_none_any_more() {
        for test in stores().await {
            let store = &test.store;
            let guest = person(&test, "guest").await;
            let colleague = person(&test, "colleague").await;
            let other_guest = person(&test, "other").await;
            let kept = invite_by(&test, colleague.actor(), other_guest, 99).await;
            for (byte, end) in [(1, "removed"), (2, "disabled"), (3, "demoted")] {
                let maker = person(&test, end).await;
                let made = invite_by(&test, maker.actor(), guest, byte).await;
                assert!(is_open(&test, &made, CHANGE.now).await);
                let id = ContactId(maker.id());
                let ended = match end {
                    "removed" => contacts::remove(store, CHANGE, id).await,
                    "disabled" => contacts::disable(store, CHANGE, id).await,
                    _ => contacts::set_role(store, CHANGE, id, ContactRole::Accountant).await,
                };
                ended.unwrap();
                assert!(!is_open(&test, &made, CHANGE.now).await, "{end}");
                assert_eq!(
                    accept(store, &made, "hash", CHANGE.now).await.unwrap(),
                    None
                );
                assert!(is_open(&test, &kept, CHANGE.now).await, "{end}");
                // The right was checked before it ended, and the link is stored after.
                let late = InvitationToken::new([byte + 10; 32]);
                let new = NewInvitation {
                    owner: guest,
                    token: &late,
                    by: maker.actor(),
                    reason: None,
                    claim: None,
                    now: CHANGE.now,
                };
                assert_eq!(add(store, new).await.unwrap(), None, "{end}");
            }
        }
    }

    #[tokio::test]
    async fn a_link_ends_when_its_maker_gets_a_new_password() {
        for test in stores().await {
            let store = &test.store;
            let maker = person(&test, "maker").await;
            let guest = person(&test, "guest").await;
            let colleague = person(&test, "colleague").await;
            let other_guest = person(&test, "other").await;
            let kept = invite_by(&test, colleague.actor(), other_guest, 99).await;
            for (byte, by) in [
                (1, Some(maker.actor())),
                (2, Some(Actor::CommandLine)),
                (3, None),
            ] {
                let made = invite_by(&test, maker.actor(), guest, byte).await;
                assert!(is_open(&test, &made, CHANGE.now).await);
                if let Some(by) = by {
                    let change = PasswordChange {
                        owner: maker,
                        hash: "hash",
                        replaces: None,
                        by,
                    };
                    let changed = people::set_password(store, change, CHANGE.now).await;
                    assert!(changed.unwrap().is_some(), "{byte}");
                } else {
                    let reset = invite(&test, maker, byte + 10).await;
                    let accepted = accept(store, &reset, "hash", CHANGE.now).await;
                    assert_eq!(accepted.unwrap(), Some(maker));
                }
                assert!(!is_open(&test, &made, CHANGE.now).await, "{byte}");
                let used = accept(store, &made, "hash", CHANGE.now).await;
                assert_eq!(used.unwrap(), None, "{byte}");
                assert!(is_open(&test, &kept, CHANGE.now).await, "{byte}");
            }
        }
    }

    /// Runs two changes at once while the link of `held` is locked, and returns their results. So both have begun, and
    /// hold what they have locked so far, when the link gets free.
    async fn change_at_once<T, U>(
        test: &TestStore,
        held: SessionOwner,
        first: impl Future<Output = T>,
        second: impl Future<Output = U>,
    ) -> (T, U) {
        let tx = test.store.begin().await.unwrap();
        ended_invitations::delete_owned_by(&tx, held).await.unwrap();
        let release = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            tx.rollback().await.unwrap();
        };
        let results = tokio::join!(first, second, release);
        (results.0, results.1)
    }

    #[tokio::test]
    async fn people_who_invited_each_other_get_new_passwords_at_once() {
        for test in stores().await {
            let store = &test.store;
            let one = person(&test, "ada").await;
            let other = person(&test, "bola").await;
            let set = |owner: SessionOwner| {
                let change = PasswordChange {
                    owner,
                    hash: "hash",
                    replaces: None,
                    by: owner.actor(),
                };
                people::set_password(store, change, CHANGE.now)
            };
            let mut bytes = 1..;
            for held in [one, other] {
                for uses_link in [false, true] {
                    let byte = bytes.next().unwrap();
                    let link = invite_by(&test, other.actor(), one, byte).await;
                    let byte = bytes.next().unwrap();
                    let made = invite_by(&test, one.actor(), other, byte).await;
                    if uses_link {
                        let used = accept(store, &link, "hash", CHANGE.now);
                        let results = Box::pin(change_at_once(&test, held, used, set(other))).await;
                        // If the other password is first, it ends the link.
                        assert!(matches!(results, (Ok(_), Ok(Some(())))), "{results:?}");
                    } else {
                        let results =
                            Box::pin(change_at_once(&test, held, set(one), set(other))).await;
                        assert!(
                            matches!(results, (Ok(Some(())), Ok(Some(())))),
                            "{results:?}"
                        );
                    }
                    for token in [&link, &made] {
                        assert!(!is_open(&test, token, CHANGE.now).await);
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn expired_links_are_replaced_at_once() {
        for test in stores().await {
            let one = person(&test, "ada").await;
            let other = person(&test, "bola").await;
            for (owner, byte) in [(one, 1), (other, 2)] {
                invite(&test, owner, byte).await;
            }
            let tokens = [3, 4].map(|byte| InvitationToken::new([byte; 32]));
            let link = |owner, token| NewInvitation {
                owner,
                token,
                by: Actor::CommandLine,
                reason: None,
                claim: None,
                now: CHANGE.now + INVITATION_LIFETIME,
            };
            let first = add(&test.store, link(one, &tokens[0]));
            let second = add(&test.store, link(other, &tokens[1]));
            let results = Box::pin(change_at_once(&test, one, first, second)).await;
            assert!(matches!(results, (Ok(Some(_)), Ok(Some(_)))), "{results:?}");
        }
    }

    #[tokio::test]
    async fn a_link_ends_with_its_time_with_a_new_password_and_with_the_person() {
        for test in stores().await {
            let owner = person(&test, "ada").await;
            person(&test, "bola").await;
            let token = invite(&test, owner, 1).await;
            let end = CHANGE.now + INVITATION_LIFETIME;
            for (now, is_valid) in [(end - Duration::from_secs(1), true), (end, false)] {
                assert_eq!(is_open(&test, &token, now).await, is_valid);
            }
            assert_eq!(
                accept(&test.store, &token, "late", end).await.unwrap(),
                None
            );
            let change = PasswordChange {
                owner,
                hash: "own",
                replaces: None,
                by: owner.actor(),
            };
            people::set_password(&test.store, change, CHANGE.now)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                accept(&test.store, &token, "hash", CHANGE.now)
                    .await
                    .unwrap(),
                None
            );
            let token = invite(&test, owner, 2).await;
            contacts::remove(&test.store, CHANGE, ContactId(owner.id()))
                .await
                .unwrap();
            assert!(!is_open(&test, &token, CHANGE.now).await);
            assert_eq!(
                accept(&test.store, &token, "hash", CHANGE.now)
                    .await
                    .unwrap(),
                None
            );
            let new = NewInvitation {
                owner,
                token: &token,
                by: owner.actor(),
                reason: None,
                claim: None,
                now: CHANGE.now,
            };
            assert_eq!(
                add(&test.store, new).await.unwrap(),
                None,
                "the person was removed"
            );
        }
    }

    #[tokio::test]
    async fn an_account_and_an_integrator_have_so_many_invitations_mailed_in_a_day() {
        for test in stores().await {
            let store = &test.store;
            let at = |hours| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours);
            let mail = async |taxpayer, hours| {
                let person = SessionOwner::Contact {
                    taxpayer: TaxpayerId(taxpayer),
                    id: ContactId(9),
                };
                let payer = Some(IntegratorId(1));
                add_mail(store, person, Actor::CommandLine, payer, at(hours))
                    .await
                    .unwrap();
            };
            for _ in 0..49 {
                mail(1, 1).await;
            }
            mail(1, 2).await;
            for taxpayer in 2..11 {
                for _ in 0..49 {
                    mail(taxpayer, 3).await;
                }
            }
            for (taxpayer, integrator, now, expected) in [
                (1, Some(1), 3, Some(25)),
                (1, None, 24, Some(25)),
                (1, Some(1), 25, None),
                (2, Some(1), 4, None),
                (2, Some(2), 4, None),
            ] {
                let payer = integrator.map(IntegratorId);
                let next = find_next_mail_time(store, TaxpayerId(taxpayer), payer, at(now)).await;
                let expected = expected.map(at);
                assert_eq!(next.unwrap(), expected, "{taxpayer} {integrator:?} {now}");
            }
            for _ in 0..9 {
                mail(11, 3).await;
            }
            for (taxpayer, integrator, expected) in [(12, 1, Some(25)), (12, 2, None)] {
                let payer = Some(IntegratorId(integrator));
                let next = find_next_mail_time(store, TaxpayerId(taxpayer), payer, at(4)).await;
                assert_eq!(next.unwrap(), expected.map(at), "{taxpayer} {integrator}");
            }
        }
    }
}
