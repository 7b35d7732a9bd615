//! Tests that command lines are parsed into the right commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::drill::parse_duration;
use super::*;
use crate::domain::access::api_key::KeyScope;
use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::domain::import::source::ImportForm;
use crate::domain::kernel::codes::Subscription;

fn parse(line: &str) -> Result<(Command, Option<PathBuf>), clap::Error> {
    let words = std::iter::once("einvoice").chain(line.split_whitespace());
    Arguments::try_parse_from(words).map(Arguments::into_parts)
}

fn command(line: &str) -> Command {
    parse(line)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
        .0
}

#[test]
fn the_definition_of_the_command_line_is_valid() {
    Arguments::command().debug_assert();
}

#[test]
fn no_subcommand_means_serve() {
    assert_eq!(command(""), Command::Serve { paused: false });
    assert_eq!(command("serve"), Command::Serve { paused: false });
}

#[test]
fn accounts_and_their_keys_are_created_changed_and_revoked() {
    let name = "N".to_owned();
    let email = "E".to_owned();
    let state = Subscription::Inactive;
    let terms = KeyArguments::default();
    let read_only_terms = KeyArguments {
        scope: Some(KeyScope::ReadOnly),
        expires_at: Some("2030-01-01T00:00:00Z".parse().unwrap()),
    };
    for (line, expected) in [
        (
            "integrator create --name N --email E",
            Command::Integrator(IntegratorSubcommand::Create {
                name,
                email: email.clone(),
                terms: terms.clone(),
            }),
        ),
        (
            "integrator list",
            Command::Integrator(IntegratorSubcommand::Keys(KeySubcommand::List)),
        ),
        (
            "integrator rotate 7 --overlap-s 60 --scope read_only --expires-at 2030-01-01T00:00:00Z",
            Command::Integrator(IntegratorSubcommand::Keys(KeySubcommand::Rotate {
                id: 7,
                overlap_s: 60,
                terms: read_only_terms,
            })),
        ),
        (
            "integrator revoke 7 --taxpayer-keys",
            Command::Integrator(IntegratorSubcommand::Revoke {
                id: 7,
                taxpayer_keys: true,
            }),
        ),
        (
            "operator create --email E",
            Command::Operator(OperatorSubcommand::Create {
                email,
                role: OperatorRole::Admin,
                terms: terms.clone(),
            }),
        ),
        (
            "operator list",
            Command::Operator(OperatorSubcommand::Keys(KeySubcommand::List)),
        ),
        (
            "operator rotate 7",
            Command::Operator(OperatorSubcommand::Keys(KeySubcommand::Rotate {
                id: 7,
                overlap_s: 0,
                terms,
            })),
        ),
        (
            "operator totp-reset 7",
            Command::Operator(OperatorSubcommand::Keys(KeySubcommand::TotpReset { id: 7 })),
        ),
        (
            "operator revoke 7",
            Command::Operator(OperatorSubcommand::Revoke { id: 7 }),
        ),
        (
            "taxpayer subscription 7 inactive",
            Command::Taxpayer(TaxpayerSubcommand::Subscription { id: 7, state }),
        ),
    ] {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn commands_that_manage_no_account_are_parsed() {
    let bind = Some("127.0.0.1:9000".parse().unwrap());
    let day = "2026-01-15".parse().unwrap();
    for (line, expected) in [
        ("demo", Command::Demo { fault: None }),
        (
            "demo --fault commit-then-drop",
            Command::Demo {
                fault: Some(DemoFault::CommitThenDrop),
            },
        ),
        ("migrate", Command::Migrate),
        ("serve --paused", Command::Serve { paused: true }),
        ("doctor", Command::Doctor { json: false }),
        ("doctor --json", Command::Doctor { json: true }),
        (
            "sandbox --bind 127.0.0.1:9000",
            Command::Sandbox { bind, seed: 1 },
        ),
        (
            "sandbox --seed 7",
            Command::Sandbox {
                bind: None,
                seed: 7,
            },
        ),
        (
            "sandbox",
            Command::Sandbox {
                bind: None,
                seed: 1,
            },
        ),
        ("config check", Command::Config(ConfigSubcommand::Check)),
        ("openapi", Command::Openapi),
        (
            "reconcile --taxpayer 7 --day 2026-01-15",
            Command::Reconcile { taxpayer: 7, day },
        ),
        (
            "secrets reseal",
            Command::Secrets(SecretsSubcommand::Reseal),
        ),
        ("checkpoint", Command::Checkpoint),
    ] {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn a_verification_has_its_checkpoints() {
    for (line, expected) in [
        (
            "verify",
            Command::Verify {
                taxpayer: None,
                checkpoints: None,
                public_key: None,
                at_least: None,
            },
        ),
        (
            "verify --taxpayer 7",
            Command::Verify {
                taxpayer: Some(7),
                checkpoints: None,
                public_key: None,
                at_least: None,
            },
        ),
        (
            "verify --checkpoints F --public-key K",
            Command::Verify {
                taxpayer: None,
                checkpoints: Some("F".into()),
                public_key: Some("K".to_owned()),
                at_least: None,
            },
        ),
    ] {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn invitations_are_made_for_each_kind_of_person() {
    let keys = |id| KeySubcommand::Invitation { id };
    let contact = ContactSubcommand::Invitation { taxpayer: 7, id: 9 };
    for (line, expected) in [
        (
            "operator invitation 7",
            Command::Operator(OperatorSubcommand::Keys(keys(7))),
        ),
        (
            "integrator invitation 7",
            Command::Integrator(IntegratorSubcommand::Keys(keys(7))),
        ),
        (
            "taxpayer contact invitation 7 9",
            Command::Taxpayer(TaxpayerSubcommand::Contact(contact)),
        ),
    ] {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn access_is_disabled_enabled_and_changed() {
    for (line, expected) in [
        (
            "integrator disable 7 --taxpayer-keys",
            Command::Integrator(IntegratorSubcommand::Disable {
                id: 7,
                taxpayer_keys: true,
            }),
        ),
        (
            "integrator enable 7",
            Command::Integrator(IntegratorSubcommand::Enable { id: 7 }),
        ),
        (
            "operator disable 7",
            Command::Operator(OperatorSubcommand::Disable { id: 7 }),
        ),
        (
            "operator enable 7",
            Command::Operator(OperatorSubcommand::Enable { id: 7 }),
        ),
        (
            "operator remove 7",
            Command::Operator(OperatorSubcommand::Remove { id: 7 }),
        ),
        (
            "operator role 7 viewer",
            Command::Operator(OperatorSubcommand::Role {
                id: 7,
                role: OperatorRole::Viewer,
            }),
        ),
        (
            "taxpayer contact role 7 9 read_only",
            Command::Taxpayer(TaxpayerSubcommand::Contact(ContactSubcommand::Role {
                taxpayer: 7,
                id: 9,
                role: ContactRole::ReadOnly,
            })),
        ),
        (
            "taxpayer contact disable 7 9",
            Command::Taxpayer(TaxpayerSubcommand::Contact(ContactSubcommand::Disable {
                taxpayer: 7,
                id: 9,
            })),
        ),
    ] {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn a_drill_lasts_for_seconds_or_minutes() {
    let spans = ["30", "30s", "2m", "0s", "51m", "s", "1h"].map(|text| parse_duration(text).ok());
    let seconds = spans.map(|span| span.map(|span| span.as_secs()));
    let expected = [Some(30), Some(30), Some(120), None, None, None, None];
    assert_eq!(seconds, expected);
    let line = "drill slow --for 5s --simulator http://s --operator-key o --taxpayer-key t";
    let Command::Drill(arguments) = command(line) else {
        panic!("{line}")
    };
    assert_eq!(
        (arguments.fault, arguments.duration, arguments.url.as_str()),
        (
            DrillFault::Slow,
            Duration::from_secs(5),
            "http://127.0.0.1:8080"
        )
    );
}

#[test]
fn an_import_has_its_file_and_the_file_of_the_key() {
    let line = "import july.csv --form full --yes --url http://s --key-file k";
    let Command::Import(arguments) = command(line) else {
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
