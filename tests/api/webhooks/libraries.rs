//! Our deliveries before the examples of docs/api.md and the libraries that they use. `scripts/test` installs these
//! below the build's directory where it can; where they are not, nothing is verified and that is said.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::documents;
use testkit::on_sqlite;
use testkit::receiver::{Received, Receiver};
use testkit::roles::Taxpayer;

use super::{CREATED, subscribed};
use crate::support::world::World;

/// A library, the program that runs it and what it runs.
struct Library {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<PathBuf>,
}

impl Library {
    /// Those that are there.
    fn installed() -> Vec<Self> {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .unwrap()
            .join("verify");
        let script = |name: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/verify")
                .join(name)
        };
        let all = [
            Self {
                name: "standardwebhooks of PyPI",
                program: home.join("python/bin/python"),
                arguments: vec![script("verify.py")],
            },
            Self {
                name: "standardwebhooks of npm",
                program: "node".into(),
                arguments: vec![script("verify.mjs"), home.join("npm")],
            },
        ];
        let (there, missing): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.verdicts(&[]).is_some());
        for library in missing {
            // Past the capture of tests that succeed.
            let _ = writeln!(
                io::stderr(),
                "SKIPPED: {} is not installed, see scripts/test",
                library.name
            );
        }
        there
    }

    /// What it says to each delivery; nothing where it cannot be run.
    fn verdicts(&self, deliveries: &[&Value]) -> Option<Vec<Value>> {
        let mut call = Command::new(&self.program);
        call.args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = call.spawn().ok()?;
        // One that cannot find its library ends without reading.
        let _ = child
            .stdin
            .take()?
            .write_all(json!(deliveries).to_string().as_bytes());
        let output = child.wait_with_output().ok()?;
        if !deliveries.is_empty() {
            assert!(
                output.status.success(),
                "{}: {}",
                self.name,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        strict_json::from_untrusted(&output.stdout).ok()
    }
}

/// A delivery, what it is verified with, and whether it is genuine.
fn case(one: &Received, secret: &str, is_genuine: bool) -> (Value, bool) {
    let headers = json!({
        "webhook-id": one.id, "webhook-timestamp": one.timestamp, "webhook-signature": one.signature,
    });
    (
        json!({ "secret": secret, "headers": headers, "body": STANDARD.encode(&one.bytes) }),
        is_genuine,
    )
}

/// A delivery with each of its parts changed, one at a time.
fn forged(one: &Received) -> [Received; 4] {
    let mut forged = [(); 4].map(|()| one.clone());
    forged[0].bytes.push(b' ');
    forged[1].id.push('0');
    forged[2].timestamp = (one.timestamp.parse::<i64>().unwrap() - 1).to_string();
    forged[3].signature = one.signature.replace("v1a,", "v1b,").replace("v1,", "v2,");
    forged
}

/// A delivery without one of its headers, or with a malformed signature, as anybody may send it.
fn malformed(one: &Received, secret: &str) -> Vec<(Value, bool)> {
    let without = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|header| {
        let mut delivery = case(one, secret, false);
        delivery.0["headers"]
            .as_object_mut()
            .unwrap()
            .remove(header);
        delivery
    });
    let signatures = ["", " ", ",", "v1", "v1,", "v1a", "v1a,", "v1a,!"].map(|signature| {
        let mut delivery = case(one, secret, false);
        delivery.0["headers"]["webhook-signature"] = json!(signature);
        delivery
    });
    without.into_iter().chain(signatures).collect()
}

async fn next(taxpayer: &Taxpayer, receiver: &Receiver) -> Received {
    let before = receiver.received_notifications().len();
    taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(before + 1).await.remove(before)
}

fn versions(one: &Received) -> Vec<&str> {
    one.signature
        .split(' ')
        .map(|part| part.split_once(',').unwrap().0)
        .collect()
}

#[on_sqlite]
async fn deliveries_are_verified_by_the_libraries_of_the_standard(world: &World) {
    let libraries = Library::installed();
    let receiver = Receiver::start();
    let (taxpayer, first) = subscribed(world, &receiver, &[CREATED]).await;
    let integrator = world.integrator();
    let mut cases = Vec::new();

    let one = next(&taxpayer, &receiver).await;
    cases.extend([
        case(&one, &first, true),
        case(&one, "whsec_c29tZSBvdGhlciBzZWNyZXQgYWx0b2dl", false),
    ]);
    cases.extend(
        forged(&one)
            .iter()
            .map(|forged| case(forged, &first, false)),
    );

    let second = integrator.rotate_secret(taxpayer.id).await;
    let one = next(&taxpayer, &receiver).await;
    cases.extend([&first, &second].map(|secret| case(&one, secret, true)));

    let public_key = integrator.rotate_key_pair(taxpayer.id).await;
    let one = next(&taxpayer, &receiver).await;
    assert_eq!(versions(&one)[..3], ["v1a", "v1", "v1"]);
    cases.extend([&first, &second, &public_key].map(|secret| case(&one, secret, true)));
    for forged in &forged(&one) {
        cases.extend([&second, &public_key].map(|secret| case(forged, secret, false)));
    }
    for secret in [&second, &public_key] {
        cases.extend(malformed(&one, secret));
    }

    let last = integrator.rotate_secret(taxpayer.id).await;
    let other_key = integrator.rotate_key_pair(taxpayer.id).await;
    let one = next(&taxpayer, &receiver).await;
    assert_eq!(versions(&one)[..5], ["v1a", "v1", "v1a", "v1", "v1"]);
    let all = [&first, &second, &public_key, &last, &other_key];
    cases.extend(all.map(|secret| case(&one, secret, true)));

    let deliveries: Vec<_> = cases.iter().map(|(delivery, _)| delivery).collect();
    for library in &libraries {
        let verdicts = library.verdicts(&deliveries).unwrap();
        assert_eq!(verdicts.len(), cases.len());
        for (verdict, (delivery, is_genuine)) in verdicts.iter().zip(&cases) {
            let knows = verdict.is_boolean();
            assert!(knows || delivery["secret"].as_str().unwrap().starts_with("whpk_"));
            assert!(
                !knows || *verdict == json!(is_genuine),
                "{}: {delivery}",
                library.name
            );
        }
    }
}
