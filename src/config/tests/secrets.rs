//! Tests that no secret is shown.

use super::{environment_faults, from_environment, production_variables};
use crate::config::limits;

#[test]
fn a_secret_that_is_not_allowed_is_not_repeated() {
    for (name, value) in [
        ("EINVOICE__DATABASE__URL", "mysql://user:hunter2@host/name"),
        ("EINVOICE__AUTHORITY__API_SECRET", "hunter2 hunter2"),
        ("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", "hunter2/"),
        ("EINVOICE__SECRETS__ENCRYPTION_KEY", "hunter2"),
        ("EINVOICE__SECRETS__ENCRYPTION_KEYS", "[\"hunter2\"]"),
    ] {
        let faults = environment_faults(&[(name, value)]);
        assert!(
            faults.contains(name) && !faults.contains("hunter2"),
            "{faults}"
        );
    }
}

#[test]
fn secrets_are_masked_wherever_settings_are_shown() {
    let mut pairs = production_variables();
    pairs.push((
        "EINVOICE__DATABASE__URL",
        "postgres://user:hunter2@host/name?sslmode=verify-full&sslpassword=hunter2",
    ));
    pairs.push((
        "EINVOICE__SECRETS__ENCRYPTION_KEYS",
        "[\"bZ7pQ0mS2xq8vJc1yL6nKdWfR9uTaEhQwBkMI0mZb4g=\"]",
    ));
    let settings = from_environment(&pairs);
    let shown = settings.to_masked_toml();
    for (name, value) in pairs
        .iter()
        .filter(|(name, _)| limits::is_secret(&name[10..].to_lowercase().replace("__", ".")))
    {
        assert!(!shown.contains(value), "{name}: {shown}");
        assert!(!format!("{settings:?}").contains(value), "{name}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("api_key = \"***\""), "{shown}");
    assert!(
        shown.contains(
            "url = \"postgres://user:***@host/name?sslmode=verify-full&sslpassword=***\""
        ),
        "{shown}"
    );
}
