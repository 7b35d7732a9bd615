//! What a person who types a magic word into an invoice number sees of it: each word, through the service.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use sandbox::MAGIC_WORDS;
use serde_json::json;

use crate::support::world::{ALONE, World};

/// What becomes of a sign that a word hits.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// It took effect, and its answer did not come: found by asking.
    Found,
    /// It had no effect: tried again, so many times in all.
    TriedAgain(u32),
    /// Nothing is wrong with it.
    Plain,
}

use Sign::{Found, Plain, TriedAgain};
use testkit::answer::Answer;
use testkit::documents::{irn, number, submission};
use testkit::on_sqlite;
use testkit::roles::Taxpayer;

/// Words whose invoices end submitted, and how.
const SUBMITTED: [(&str, Sign); 15] = [
    ("SBXDROP", Found),
    ("SBXSTALL", Found),
    ("SBXHANG", TriedAgain(2)),
    ("SBXRESET", TriedAgain(2)),
    ("SBXGARBAGE", Found),
    ("SBXXML", Found),
    ("SBXMISSING", Found),
    ("SBX500", TriedAgain(3)),
    ("SBX429", TriedAgain(3)),
    ("SBXBUSY", TriedAgain(3)),
    ("SBXBUSY422", TriedAgain(3)),
    ("SBXKEY", TriedAgain(3)),
    ("SBXAWAY", Plain),
    ("SBXOFFLINE", Plain),
    ("SBXSLOW", Plain),
];
const ELSEWHERE: [&str; 4] = ["SBXDOWN", "SBXREJECT", "SBXHEALTH", "SBXOUTAGE"];

fn invoice_no(word: &str) -> String {
    format!("INV{}{word}", number())
}

async fn submitted(taxpayer: &Taxpayer, no: &str) -> Answer {
    taxpayer
        .app()
        .submit_to_the_end(&submission(taxpayer, no))
        .await
}

async fn transmitted(world: &World, taxpayer: &Taxpayer, irn: &str) {
    taxpayer
        .app()
        .transmit_to_the_end(irn)
        .await
        .expect_status(200);
    let sheet = world.authority.invoice(irn).unwrap();
    assert_eq!((sheet.sign_count, sheet.transmit_count), (1, 1), "{irn}");
}

/// Submits an invoice of this word and says how it was signed.
async fn ends_submitted(world: &World, taxpayer: &Taxpayer, typed: &str, sign: Sign) {
    let no = invoice_no(typed);
    let irn = irn(taxpayer, &no);
    submitted(taxpayer, &no).await.expect_status(200);
    let sheet = world.authority.invoice(&irn).unwrap();
    let tries = if let TriedAgain(tries) = sign {
        tries
    } else {
        1
    };
    assert_eq!(
        (sheet.sign_count, sheet.sign_attempts),
        (1, tries),
        "{typed}"
    );
    let run = taxpayer.app().run(&irn).await.expect_status(200);
    let is_by_answer = run.data()["resolved_by"] == json!("answer");
    assert_eq!(
        is_by_answer,
        !matches!(sign, Found),
        "{typed}: {}",
        run.text
    );
    match typed {
        "SBXAWAY" => transmitted(world, taxpayer, &irn).await,
        "SBXOFFLINE" => {
            let answer = taxpayer.app().transmit(&irn).await;
            assert_eq!(
                answer.expect_refusal(500, "ACCESS_POINT_OFFLINE").body["retryable"],
                json!(true)
            );
        }
        _ => {}
    }
}

// Longer than an answer of SBXSLOW, and short for those that never come.
#[on_sqlite(&[("AUTHORITY__TIMEOUT_S", "4"), ("PIPELINE__WAIT_S", "5")])]
async fn each_word_that_passes_ends_with_one_signature(world: &World) {
    let taxpayer = world.taxpayer().await;
    let taxpayer = &taxpayer;
    join_all(
        SUBMITTED.map(async |(typed, sign)| ends_submitted(world, taxpayer, typed, sign).await),
    )
    .await;
}

#[on_sqlite(&[("PIPELINE__WAIT_S", "1")])]
async fn a_word_that_never_passes_is_answered_and_signs_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = invoice_no("SBXREJECT");
    submitted(&taxpayer, &no)
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    let down = submission(&taxpayer, &invoice_no("SBXDOWN"));
    taxpayer
        .app()
        .submit(&down)
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    let run = taxpayer
        .app()
        .run(down["irn"].as_str().unwrap())
        .await
        .expect_status(200);
    assert!(
        ["waiting", "running"].contains(&run.data()["state"].as_str().unwrap()),
        "{}",
        run.text
    );
    assert_eq!(world.authority.invoices().len(), 0);
}

#[on_sqlite(&[("PIPELINE__WAIT_S", "1")])]
async fn a_fault_for_all_taxpayers_passes_as_well(world: &World) {
    let taxpayer = world.taxpayer().await;
    let waiting = submission(&taxpayer, &invoice_no("SBXOUTAGE3"));
    taxpayer
        .app()
        .submit(&waiting)
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    let other = invoice_no("OTHER");
    let answer = taxpayer.app().submit(&submission(&taxpayer, &other)).await;
    answer.expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    for no in [waiting["invoice_reference"].as_str().unwrap(), &other] {
        submitted(&taxpayer, no).await.expect_status(200);
        transmitted(world, &taxpayer, &irn(&taxpayer, no)).await;
    }
}

#[on_sqlite(ALONE)]
async fn a_word_makes_the_system_unhealthy_for_a_while(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = invoice_no("SBXHEALTH3");
    submitted(&taxpayer, &no).await.expect_status(200);
    let irn = irn(&taxpayer, &no);
    let answer = taxpayer.app().transmit(&irn).await;
    assert_eq!(
        answer.expect_refusal(500, "HEALTH_CHECK_DOWN").body["retryable"],
        json!(true)
    );
    transmitted(world, &taxpayer, &irn).await;
}

#[test]
fn every_magic_word_is_tried_here_and_listed_in_the_guide() {
    let tried: BTreeSet<&str> = SUBMITTED
        .iter()
        .map(|(word, _)| *word)
        .chain(ELSEWHERE)
        .collect();
    let words: BTreeSet<&str> = MAGIC_WORDS.iter().map(|known| known.word).collect();
    assert_eq!(tried, words);
    let guide = include_str!("../../../docs/api.md");
    let rows: Vec<&str> = guide
        .lines()
        .filter(|line| line.starts_with("| SBX"))
        .collect();
    for known in MAGIC_WORDS {
        let row = format!("| {} | {} |", known.word, known.happens);
        assert!(
            rows.iter().any(|line| line.starts_with(&row)),
            "docs/api.md lacks {row}"
        );
    }
}
