//! Tests of the values of single settings.

use address_policy::AllowedNetwork;
use jiff::tz::Offset;

use super::{environment_faults, from_environment, production_variables};
use crate::config::form;

#[test]
fn a_list_is_written_as_toml_and_replaces_the_default_list() {
    let settings = from_environment(&[
        ("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0, 1, 2]"),
        ("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", " [\"10.0.0.0/8\"]"),
    ]);
    assert_eq!(settings.webhooks.retry_schedule_s, [0, 1, 2]);
    assert_eq!(
        settings.allowed_networks(),
        ["10.0.0.0/8".parse::<AllowedNetwork>().unwrap()]
    );
    let faults = environment_faults(&[("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "0,1")]);
    insta::assert_snapshot!(faults, @"`webhooks.retry_schedule_s` (from the variable EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S) must be a list of one or more whole numbers from 0 to 2678400, such as [0, 5, 300], not \"0,1\"");
    assert!(
        environment_faults(&[("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[]")])
            .contains("one or more")
    );
}

#[test]
fn loopback_may_be_called_in_development_unless_networks_are_named() {
    let loopback =
        ["127.0.0.0/8", "::1/128"].map(|network| network.parse::<AllowedNetwork>().unwrap());
    assert_eq!(from_environment(&[]).allowed_networks(), loopback);
    assert_eq!(
        from_environment(&production_variables()).allowed_networks(),
        []
    );
    let none = from_environment(&[("EINVOICE__WEBHOOKS__ALLOWED_NETWORKS", "[]")]);
    assert_eq!(none.allowed_networks(), []);
}

#[test]
fn max_concurrent_calls_is_between_one_and_ten_thousand() {
    const NAME: &str = "EINVOICE__AUTHORITY__MAX_CONCURRENT_CALLS";
    assert_eq!(from_environment(&[]).authority.max_concurrent_calls, 64);
    for (text, calls) in [("1", 1), ("10000", 10_000)] {
        assert_eq!(
            from_environment(&[(NAME, text)])
                .authority
                .max_concurrent_calls,
            calls
        );
    }
    for text in ["0", "10001", "-1", "many"] {
        let faults = environment_faults(&[(NAME, text)]);
        assert!(
            faults.contains("must be a whole number from 1 to 10000"),
            "{faults}"
        );
    }
}

#[test]
fn offsets_are_read_in_the_format_in_which_they_are_shown() {
    for (text, seconds) in [
        ("+01:00", Some(3_600)),
        ("-03:30", Some(-12_600)),
        ("Z", Some(0)),
        ("+14:00", Some(50_400)),
    ]
    .into_iter()
    .chain(["", "+1:00", "+0100", "+15:00", "+00:60", "+-1:00", "01:00"].map(|text| (text, None)))
    {
        assert_eq!(
            form::parse_offset(text).map(Offset::seconds),
            seconds,
            "{text}"
        );
    }
    let shown = from_environment(&[("EINVOICE__AUTHORITY__UTC_OFFSET", "-00:30")]).to_masked_toml();
    assert!(shown.contains("utc_offset = \"-00:30\""), "{shown}");
}
