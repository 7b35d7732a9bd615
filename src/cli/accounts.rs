//! The subcommands that manage accounts: integrators, operators, taxpayers and their contact persons, and keys.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use jiff::Timestamp;

use crate::domain::access::api_key::{KeyScope, KeyTerms, OVERLAP_MAX};
use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::domain::kernel::codes::Subscription;

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum IntegratorSubcommand {
    /// Creates an integrator and prints { id, name, email, password, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        name: String,
        #[arg(long)]
        email: String,
        #[command(flatten)]
        terms: KeyArguments,
    },
    #[command(flatten)]
    Keys(KeySubcommand),
    /// Revokes all keys of an integrator and ends its sessions, at once. Prints the numbers of both as one line of
    /// JSON. A person who knows the password can sign in again: use `disable` to keep everybody out.
    Revoke {
        id: i64,
        /// Also revokes the keys of the taxpayers that the integrator onboarded.
        #[arg(long)]
        taxpayer_keys: bool,
    },
    /// Disables an integrator: ends its keys and sessions at once and refuses its password, until `enable`. Prints what
    /// it ended as one line of JSON. Its taxpayers are not disabled.
    Disable {
        id: i64,
        /// Also revokes the keys of the taxpayers that the integrator onboarded.
        #[arg(long)]
        taxpayer_keys: bool,
    },
    /// Lets a disabled integrator sign in again, with its password. Keys and sessions that were ended stay ended.
    Enable { id: i64 },
}

/// The subcommands that manage keys, passwords and second factors of integrators and of operators.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeySubcommand {
    /// Prints all accounts of this kind with their keys as one line of JSON.
    List,
    /// Gives an account a new key and prints { id, `api_key` } as one line of JSON. The old key is refused at once,
    /// or after the overlap.
    Rotate {
        id: i64,
        /// The time for which the old key stays valid, in seconds; at most 7 days.
        #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=OVERLAP_S_MAX))]
        overlap_s: u64,
        #[command(flatten)]
        terms: KeyArguments,
    },
    /// Gives an account a new password for the console, ends its sessions, and prints { id, password } as one line of
    /// JSON.
    Password { id: i64 },
    /// Makes a one-time link with which a person chooses a new password for the console, and prints { id, path,
    /// `expires_at` } as one line of JSON. The present password stays valid until the link is used. The link expires
    /// after 72 hours.
    Invitation { id: i64 },
    /// Removes the second factor of an account whose person lost it, ends its sessions, and prints { id, `had_totp` }
    /// as one line of JSON. The next sign-in needs the password only. If a second factor is required, the person then
    /// sets up a new one.
    TotpReset { id: i64 },
}

/// The terms of a new key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct KeyArguments {
    /// The scope of the new key: `full`, or `read_only` for a key that cannot change anything. By default the scope
    /// of the replaced key.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<KeyScope>,
    /// The time at which the key expires, in RFC 3339 format. By default the key never expires.
    #[arg(long, value_name = "TIME")]
    pub expires_at: Option<Timestamp>,
}

const OVERLAP_S_MAX: u64 = OVERLAP_MAX.as_secs();

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum OperatorSubcommand {
    /// Creates an operator and prints { id, email, role, password, `api_key` } as one line of JSON.
    Create {
        #[arg(long)]
        email: String,
        /// The role of the operator and of its keys: a viewer can only read, an operator can also act, an admin can
        /// also change accounts.
        #[arg(long, value_name = "ROLE", default_value_t = OperatorRole::Admin)]
        role: OperatorRole,
        #[command(flatten)]
        terms: KeyArguments,
    },
    #[command(flatten)]
    Keys(KeySubcommand),
    /// Revokes all keys of an operator and ends its sessions, at once. Prints the numbers of both as one line of JSON.
    /// A person who knows the password can sign in again: use `disable` to keep everybody out.
    Revoke { id: i64 },
    /// Disables an operator: ends its keys and sessions at once and refuses its password, until `enable`. Prints what
    /// it ended as one line of JSON.
    Disable { id: i64 },
    /// Lets a disabled operator sign in again, with its password. Keys and sessions that were ended stay ended.
    Enable { id: i64 },
    /// Removes an operator for good, with its keys, sessions and second factor.
    Remove { id: i64 },
    /// Gives an operator another role. It applies to the operator's keys and sessions from the next request on.
    Role {
        id: i64,
        /// viewer, operator or admin.
        #[arg(value_name = "ROLE")]
        role: OperatorRole,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TaxpayerSubcommand {
    /// Sets whether a taxpayer may create invoices.
    Subscription {
        id: i64,
        #[arg(value_name = "STATE", value_parser = subscription_parser())]
        state: Subscription,
    },
    /// Manages the contact persons of a taxpayer, who sign in to its account.
    #[command(subcommand)]
    Contact(ContactSubcommand),
}

/// The subcommands disable, enable, remove and role print { `taxpayer_id`, id, `ended_sessions` } as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ContactSubcommand {
    /// Makes a one-time link with which a contact person chooses a password, and prints { id, path, `expires_at` } as
    /// one line of JSON. The present password stays valid until the link is used. The link expires after 72 hours.
    Invitation { taxpayer: i64, id: i64 },
    /// Ends the sessions of a contact person at once and refuses its password, until `enable`.
    Disable { taxpayer: i64, id: i64 },
    /// Lets a disabled contact person sign in again, with its password.
    Enable { taxpayer: i64, id: i64 },
    /// Removes a contact person for good and ends its sessions.
    Remove { taxpayer: i64, id: i64 },
    /// Gives a contact person another role. It applies from the person's next request on.
    Role {
        taxpayer: i64,
        id: i64,
        /// `read_only`, accountant or owner.
        #[arg(value_name = "ROLE")]
        role: ContactRole,
    },
    /// Removes the second factor of a contact person who lost it, ends its sessions, and prints { id, `had_totp` } as
    /// one line of JSON.
    TotpReset { taxpayer: i64, id: i64 },
}

impl KeyArguments {
    /// Returns the terms of the new key. The old key stays valid for `overlap_s` seconds.
    pub fn into_terms(self, overlap_s: u64) -> KeyTerms {
        let Self { scope, expires_at } = self;
        KeyTerms {
            scope,
            expires_at,
            overlap: Duration::from_secs(overlap_s),
            keeps_others: false,
        }
    }
}

fn subscription_parser() -> impl clap::builder::TypedValueParser<Value = Subscription> {
    let words = [Subscription::Active, Subscription::Inactive].map(Subscription::as_str);
    PossibleValuesParser::new(words).try_map(|word| Subscription::parse(&word).ok_or("not a state"))
}
