//! Features of crates that decide about safety. Cargo unites what all crates of the graph ask for, so one of them may
//! change what the others do: sqlx turned on the feature of `serde_json` with which one request ended the process.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

/// Crates, each with all of its features. One more or one less is a question to be answered here.
const EXACT: &[(&str, &str)] = &[
    // `preserve_order` would change digests, which rely on sorted keys. `raw_value` comes with sqlx, and strict_json cuts
    // checked texts with it: with it and with `arbitrary_precision` no text may be given to the parsers of the crate, so
    // clippy bans them.
    (
        "serde_json",
        "arbitrary_precision,default,raw_value,std,unbounded_depth",
    ),
    // Nothing that loads code into the process or replaces the library that is compiled in.
    (
        "libsqlite3-sys",
        "bundled,bundled_bindings,cc,pkg-config,unlock_notify,vcpkg",
    ),
];

/// Crates that nothing may bring in: TLS is rustls, in one implementation of its cryptography for HTTP, and passwords
/// for NTLM go through no code but ours.
const ABSENT: &[&str] = &["native-tls", "ntlmssp", "openssl-sys", "rusqlite"];

/// Every crate that the service is made of, with its features.
fn graph() -> io::Result<BTreeMap<String, String>> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}|{f}",
        ])
        .output()?;
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let text = String::from_utf8_lossy(&tree.stdout).into_owned();
    let row = |line: &str| {
        let (package, features) = line.split_once('|')?;
        let features = features.trim_end_matches(" (*)").to_owned();
        Some((package.split(' ').next()?.to_owned(), features))
    };
    Ok(text.lines().filter_map(row).collect())
}

#[test]
fn the_features_that_matter_for_safety_are_those_that_were_looked_at() -> io::Result<()> {
    let graph = graph()?;
    for (name, features) in EXACT {
        assert_eq!(
            graph.get(*name).map(String::as_str),
            Some(*features),
            "the features of {name} have changed"
        );
    }
    for name in ABSENT {
        assert!(!graph.contains_key(*name), "{name} is in the graph");
    }
    Ok(())
}

#[test]
fn a_panic_unwinds_in_every_profile() {
    let manifest: toml::Table = include_str!("../../Cargo.toml")
        .parse()
        .expect("Cargo.toml");
    let profiles = manifest["profile"].as_table().expect("profiles");
    assert_eq!(
        profiles["release"]
            .get("panic")
            .and_then(toml::Value::as_str),
        Some("unwind")
    );
    for (name, profile) in profiles {
        assert!(
            profile
                .get("panic")
                .is_none_or(|how| how.as_str() == Some("unwind")),
            "profile {name}"
        );
    }
}
