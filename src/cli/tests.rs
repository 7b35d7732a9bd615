//! Lines as people type them, and the calls that they are.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::drill::parse_span;
use super::*;
use crate::domain::access::api_key::KeyScope;
use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::domain::import::source::ImportForm;
use crate::domain::kernel::codes::Subscription;

fn parse(line: &str) -> Result<(Call, Option<PathBuf>), clap::Error> {
    let words = std::iter::once("einvoice").chain(line.split_whitespace());
    Arguments::try_parse_from(words).map(Arguments::into_parts)
}

fn call(line: &str) -> Call {
    parse(line)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
        .0
}

#[test]
fn the_definition_holds_together() {
    Arguments::command().debug_assert();
}

#[test]
fn no_subcommand_means_serve() {
    assert_eq!(call(""), Call::Serve { paused: false });
    assert_eq!(call("serve"), Call::Serve { paused: false });
}

#[test]
fn accounts_and_their_keys_are_created_changed_and_revoked() {
    let name = "N".to_owned();
    let email = "E".to_owned();
    let state = Subscription::Inactive;
    let terms = KeyArguments::default();
    let narrow = KeyArguments {
        scope: Some(KeyScope::ReadOnly),
        expires_at: Some("2030-01-01T00:00:00Z".parse().unwrap()),
    };
    for (line, expected) in [
        (
            "integrator create --name N --email E",
            Call::Integrator(IntegratorCall::Create {
                name,
                email: email.clone(),
                terms: terms.clone(),
            }),
        ),
        (
            "integrator list",
            Call::Integrator(IntegratorCall::Keys(KeyCall::List)),
        ),
        (
            "integrator rotate 7 --overlap-s 60 --scope read_only --expires-at 2030-01-01T00:00:00Z",
            Call::Integrator(IntegratorCall::Keys(KeyCall::Rotate {
                id: 7,
                overlap_s: 60,
                terms: narrow,
            })),
        ),
        (
            "integrator revoke 7 --taxpayer-keys",
            Call::Integrator(IntegratorCall::Revoke {
                id: 7,
                taxpayer_keys: true,
            }),
        ),
        (
            "operator create --email E",
            Call::Operator(OperatorCall::Create {
                email,
                role: OperatorRole::Admin,
                terms: terms.clone(),
            }),
        ),
        (
            "operator list",
            Call::Operator(OperatorCall::Keys(KeyCall::List)),
        ),
        (
            "operator rotate 7",
            Call::Operator(OperatorCall::Keys(KeyCall::Rotate {
                id: 7,
                overlap_s: 0,
                terms,
            })),
        ),
        (
            "operator totp-reset 7",
            Call::Operator(OperatorCall::Keys(KeyCall::TotpReset { id: 7 })),
        ),
        (
            "operator revoke 7",
            Call::Operator(OperatorCall::Revoke { id: 7 }),
        ),
        (
            "taxpayer subscription 7 inactive",
            Call::Taxpayer(TaxpayerCall::Subscription { id: 7, state }),
        ),
    ] {
        assert_eq!(call(line), expected, "{line}");
    }
}

#[test]
fn calls_that_manage_no_account_are_understood() {
    let bind = Some("127.0.0.1:9000".parse().unwrap());
    let day = "2026-01-15".parse().unwrap();
    for (line, expected) in [
        ("demo", Call::Demo { fault: None }),
        (
            "demo --fault commit-then-drop",
            Call::Demo {
                fault: Some(DemoFault::CommitThenDrop),
            },
        ),
        ("migrate", Call::Migrate),
        ("serve --paused", Call::Serve { paused: true }),
        ("doctor", Call::Doctor { json: false }),
        ("doctor --json", Call::Doctor { json: true }),
        (
            "sandbox --bind 127.0.0.1:9000",
            Call::Sandbox { bind, seed: 1 },
        ),
        (
            "sandbox --seed 7",
            Call::Sandbox {
                bind: None,
                seed: 7,
            },
        ),
        (
            "sandbox",
            Call::Sandbox {
                bind: None,
                seed: 1,
            },
        ),
        ("config check", Call::Config(ConfigCall::Check)),
        ("openapi", Call::Openapi),
        (
            "reconcile --taxpayer 7 --day 2026-01-15",
            Call::Reconcile { taxpayer: 7, day },
        ),
        ("secrets reseal", Call::Secrets(SecretsCall::Reseal)),
        ("checkpoint", Call::Checkpoint),
    ] {
        assert_eq!(call(line), expected, "{line}");
    }
}

#[test]
fn a_verification_names_its_checkpoints() {
    for (line, expected) in [
        (
            "verify",
            Call::Verify {
                taxpayer: None,
                checkpoints: None,
                public_key: None,
                at_least: None,
            },
        ),
        (
            "verify --taxpayer 7",
            Call::Verify {
                taxpayer: Some(7),
                checkpoints: None,
                public_key: None,
                at_least: None,
            },
        ),
        (
            "verify --checkpoints F --public-key K",
            Call::Verify {
                taxpayer: None,
                checkpoints: Some("F".into()),
                public_key: Some("K".to_owned()),
                at_least: None,
            },
        ),
    ] {
        assert_eq!(call(line), expected, "{line}");
    }
}

#[test]
fn invitations_are_made_for_each_kind_of_person() {
    let keys = |id| KeyCall::Invitation { id };
    let contact = ContactCommand::Invitation { taxpayer: 7, id: 9 };
    for (line, expected) in [
        (
            "operator invitation 7",
            Call::Operator(OperatorCall::Keys(keys(7))),
        ),
        (
            "integrator invitation 7",
            Call::Integrator(IntegratorCall::Keys(keys(7))),
        ),
        (
            "taxpayer contact invitation 7 9",
            Call::Taxpayer(TaxpayerCall::Contact(contact)),
        ),
    ] {
        assert_eq!(call(line), expected, "{line}");
    }
}

#[test]
fn access_is_taken_away_and_given_back() {
    for (line, expected) in [
        (
            "integrator disable 7 --taxpayer-keys",
            Call::Integrator(IntegratorCall::Disable {
                id: 7,
                taxpayer_keys: true,
            }),
        ),
        (
            "integrator enable 7",
            Call::Integrator(IntegratorCall::Enable { id: 7 }),
        ),
        (
            "operator disable 7",
            Call::Operator(OperatorCall::Disable { id: 7 }),
        ),
        (
            "operator enable 7",
            Call::Operator(OperatorCall::Enable { id: 7 }),
        ),
        (
            "operator remove 7",
            Call::Operator(OperatorCall::Remove { id: 7 }),
        ),
        (
            "operator role 7 viewer",
            Call::Operator(OperatorCall::Role {
                id: 7,
                role: OperatorRole::Viewer,
            }),
        ),
        (
            "taxpayer contact role 7 9 read_only",
            Call::Taxpayer(TaxpayerCall::Contact(ContactCommand::Role {
                taxpayer: 7,
                id: 9,
                role: ContactRole::ReadOnly,
            })),
        ),
        (
            "taxpayer contact disable 7 9",
            Call::Taxpayer(TaxpayerCall::Contact(ContactCommand::Disable {
                taxpayer: 7,
                id: 9,
            })),
        ),
    ] {
        assert_eq!(call(line), expected, "{line}");
    }
}

#[test]
fn a_drill_lasts_for_seconds_or_minutes() {
    let spans = ["30", "30s", "2m", "0s", "51m", "s", "1h"].map(|text| parse_span(text).ok());
    let seconds = spans.map(|span| span.map(|span| span.as_secs()));
    let expected = [Some(30), Some(30), Some(120), None, None, None, None];
    assert_eq!(seconds, expected);
    let line = "drill slow --for 5s --simulator http://s --operator-key o --taxpayer-key t";
    let Call::Drill(arguments) = call(line) else {
        panic!("{line}")
    };
    assert_eq!(
        (arguments.fault, arguments.lasts, arguments.url.as_str()),
        (
            DrillFault::Slow,
            Duration::from_secs(5),
            "http://127.0.0.1:8080"
        )
    );
}

#[test]
fn an_import_names_its_file_and_where_the_key_is() {
    let line = "import july.csv --form full --yes --url http://s --key-file k";
    let Call::Import(arguments) = call(line) else {
        panic!("{line}")
    };
    assert_eq!(
        (arguments.form, arguments.yes, arguments.url.as_str()),
        (ImportForm::Full, true, "http://s")
    );
    assert_eq!(arguments.key_file, Some("k".into()));
    assert_eq!(
        parse("import").unwrap_err().kind(),
        ErrorKind::MissingRequiredArgument
    );
}

#[test]
fn the_settings_file_may_be_named_anywhere_on_the_line() {
    for line in [
        "--config x.toml",
        "--config x.toml config check",
        "config --config x.toml check",
        "config check --config x.toml",
        "verify --config=x.toml --taxpayer 7",
    ] {
        assert_eq!(parse(line).unwrap().1, Some("x.toml".into()), "{line}");
    }
}

#[test]
fn invalid_lines_are_refused() {
    for (line, kind) in [
        ("start", ErrorKind::InvalidSubcommand),
        (
            "integrator create --name N",
            ErrorKind::MissingRequiredArgument,
        ),
        ("taxpayer subscription 7 paused", ErrorKind::InvalidValue),
        ("integrator rotate seven", ErrorKind::ValueValidation),
        (
            "operator rotate 7 --overlap-s 604801",
            ErrorKind::ValueValidation,
        ),
        (
            "operator create --email E --scope some",
            ErrorKind::ValueValidation,
        ),
        (
            "operator revoke 7 --taxpayer-keys",
            ErrorKind::UnknownArgument,
        ),
        (
            "operator disable 7 --taxpayer-keys",
            ErrorKind::UnknownArgument,
        ),
        ("operator role 7", ErrorKind::MissingRequiredArgument),
        ("operator role 7 owner", ErrorKind::ValueValidation),
        ("integrator remove 7", ErrorKind::InvalidSubcommand),
        (
            "taxpayer subscription seven active",
            ErrorKind::ValueValidation,
        ),
        ("sandbox --bind here", ErrorKind::ValueValidation),
        ("sandbox --seed luck", ErrorKind::ValueValidation),
        ("demo --fault fire", ErrorKind::InvalidValue),
        ("reconcile --taxpayer 7", ErrorKind::MissingRequiredArgument),
        (
            "reconcile --taxpayer 7 --day yesterday",
            ErrorKind::ValueValidation,
        ),
        (
            "reconcile --taxpayer seven --day 2026-01-15",
            ErrorKind::ValueValidation,
        ),
        ("verify --public-key K", ErrorKind::MissingRequiredArgument),
        (
            "verify --checkpoints F --at-least 7",
            ErrorKind::ValueValidation,
        ),
        ("serve --port 1", ErrorKind::UnknownArgument),
    ] {
        assert_eq!(parse(line).unwrap_err().kind(), kind, "{line}");
    }
}
