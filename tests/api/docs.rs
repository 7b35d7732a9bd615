//! /docs/: every link leads to a page, nothing comes from elsewhere, and each command may be pasted as it stands.

use std::collections::{BTreeMap, BTreeSet};

use einvoice::internals::{guide_paths, page_patterns};
use reqwest::redirect::Policy;
use serde_json::Value;
use testkit::documents::validation;
use testkit::edit::with;
use testkit::on_sqlite;
use testkit::roles::INVOICES;

use crate::support::world::World;

/// A page of the documentation as it was answered.
struct Page {
    status: u16,
    policy: String,
    html: String,
}

async fn open(world: &World, path: &str) -> Page {
    let request = world.anonymous().request("GET", path);
    let answer = request.send().await.unwrap();
    let policy = answer.headers().get("content-security-policy");
    Page {
        status: answer.status().as_u16(),
        policy: policy.map_or_else(String::new, |policy| policy.to_str().unwrap().to_owned()),
        html: answer.text().await.unwrap(),
    }
}

fn is_markdown(path: &str) -> bool {
    path.strip_suffix(".md").is_some()
}

/// Returns the values of an attribute.
fn attributes<'h>(html: &'h str, name: &str) -> Vec<&'h str> {
    let start = format!(" {name}=\"");
    let values = html.split(start.as_str()).skip(1);
    values.map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Returns the addresses to which a page leads, as a browser reads them. Those of a guide in Markdown have no headings.
fn links(path: &str, page: &Page) -> Vec<String> {
    if !is_markdown(path) {
        let links = attributes(&page.html, "href").into_iter();
        return links.map(str::to_owned).collect();
    }
    let parts = page.html.split("](").skip(1);
    let targets = parts.filter_map(|rest| rest.split(')').next()?.split('#').next());
    let files = targets.filter(|file| !file.is_empty());
    files
        .map(|file| {
            if file.starts_with('/') || file.contains("://") {
                file.to_owned()
            } else {
                format!("/docs/guides/{file}")
            }
        })
        .collect()
}

#[on_sqlite]
async fn each_link_of_the_documentation_leads_to_a_page_and_to_its_heading(world: &World) {
    let mut open_paths = vec!["/docs/".to_owned()];
    let mut pages = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    while let Some(path) = open_paths.pop() {
        let page = open(world, &path).await;
        assert_eq!(page.status, 200, "{path}");
        for link in links(&path, &page) {
            let (target, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            if !target.starts_with("/docs/") {
                continue;
            }
            if !anchor.is_empty() {
                anchors.insert((target.to_owned(), anchor.to_owned()));
            }
            let is_known = target == path || pages.contains_key(target);
            if !is_known && !open_paths.iter().any(|path| path == target) {
                open_paths.push(target.to_owned());
            }
        }
        pages.insert(path, page);
    }
    for (path, anchor) in anchors {
        let ids = attributes(&pages[&path].html, "id");
        assert!(ids.contains(&anchor.as_str()), "{path}#{anchor}");
    }
    for path in guide_paths() {
        assert!(pages.contains_key(&path), "{path} is not linked to");
    }
    assert!(pages.len() > 250, "{}", pages.len());
    let shown = pages.iter().filter(|(path, _)| !is_markdown(path));
    for (path, page) in shown {
        assert!(page.html.starts_with("<!doctype html>"), "{path}");
        assert!(
            page.policy
                .starts_with("default-src 'none'; script-src 'self'; style-src 'self';")
                && !page.policy.contains("http")
                && !page.policy.contains("unsafe"),
            "{path}: {}",
            page.policy
        );
        assert!(attributes(&page.html, "style").is_empty(), "{path}");
        for source in attributes(&page.html, "src") {
            assert!(source.starts_with("/assets/"), "{path}: {source}");
        }
        assert!(page.html.len() < 60_000, "{path}: {}", page.html.len());
    }
}

#[on_sqlite]
async fn what_is_not_there_is_a_page_too(world: &World) {
    for path in [
        "/docs/no-such-page",
        "/docs/guides/none",
        "/docs/guides/none.md",
        "/docs/guides/api/none",
        "/docs/reference/none",
        "/docs/errors/NONE",
        "/docs/errors/%00",
    ] {
        let page = open(world, path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.html.contains("There is no such page"), "{path}");
    }
}

#[on_sqlite]
async fn programs_read_the_guides_as_markdown(world: &World) {
    let list = open(world, "/llms.txt").await;
    let links = list.html.split("](").skip(1);
    let links: Vec<_> = links.filter_map(|rest| rest.split(')').next()).collect();
    let guides: Vec<_> = links.iter().filter(|link| is_markdown(link)).collect();
    assert!(guides.len() > 5, "{}", list.html);
    for link in &links {
        let request = world.anonymous().request("GET", link);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{link}");
        let kind = answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        let text = answer.text().await.unwrap();
        if is_markdown(link) {
            assert_eq!(kind, "text/markdown; charset=utf-8");
            assert!(text.starts_with("# "), "{link}");
        }
    }
}

#[on_sqlite]
async fn a_search_leads_to_the_page_that_has_the_words(world: &World) {
    for (text, address) in [
        ("sending+twice", "/docs/guides/api/sending-twice"),
        ("rate_limited", "/docs/errors/RATE_LIMITED"),
        ("confirm-receipt", "/docs/reference/confirm_receipt"),
        ("%3Cscript%3E", "No page has all of these words"),
    ] {
        let page = open(world, &format!("/docs/search?q={text}")).await;
        assert_eq!(page.status, 200, "{text}");
        assert!(page.html.contains(address), "{text}");
        assert!(!page.html.contains("<script>"), "{text}");
    }
}

#[on_sqlite]
async fn a_failure_leads_to_the_page_about_its_code(world: &World) {
    let answer = world.anonymous().get(INVOICES).await.expect_status(401);
    let path = answer.body["doc_url"].as_str().unwrap();
    let page = open(world, path).await;
    assert_eq!(page.status, 200);
    for words in ["UNAUTHENTICATED", "send <code>x-api-key</code>"] {
        assert!(page.html.contains(words), "{words}");
    }
}

#[on_sqlite]
async fn the_address_without_a_slash_leads_to_the_first_page(world: &World) {
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(Policy::none());
    let answer = http
        .build()
        .unwrap()
        .get(format!("{}/docs", world.root()))
        .send();
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(answer.headers()["location"], "/docs/");
    assert!(page_patterns().contains(&"/docs/"));
}

/// The command on the page of an operation, as a shell reads it.
pub(crate) struct PastedCommand {
    pub(crate) method: String,
    /// The address below that of the service, with the values of the parameters.
    pub(crate) path: String,
    /// The variable of the key.
    pub(crate) key: Option<String>,
    pub(crate) body: Option<Value>,
}

impl PastedCommand {
    pub(crate) async fn of_page(world: &World, operation: &str) -> Self {
        let page = open(world, &format!("/docs/reference/{operation}")).await;
        assert_eq!(page.status, 200, "{operation}");
        let (_, rest) = page.html.split_once("id=\"command\">").unwrap();
        let shown = rest.split("</pre>").next().unwrap();
        Self::from_text(&unescape(shown))
    }

    fn from_text(text: &str) -> Self {
        let words = shell_words(text);
        let after = |option: &str| {
            let position = words.iter().position(|word| word == option)?;
            words.get(position + 1).cloned()
        };
        let body = after("-d").map(|text| strict_json::from_trusted(&text).unwrap());
        let address = words.iter().find_map(|word| word.strip_prefix("$URL"));
        let key = words
            .iter()
            .find_map(|word| word.strip_prefix("x-api-key: $"));
        Self {
            method: after("-X").unwrap_or_else(|| {
                let method = if body.is_some() { "POST" } else { "GET" };
                method.to_owned()
            }),
            path: address.unwrap().to_owned(),
            key: key.map(str::to_owned),
            body,
        }
    }
}

/// Undoes what the page does with characters of HTML.
fn unescape(html: &str) -> String {
    [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#38;", "&"),
    ]
    .iter()
    .fold(html.to_owned(), |text, (escaped, letter)| {
        text.replace(escaped, letter)
    })
}

/// Divides a command into words, with the two kinds of quotes and the backslash of a shell.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let word = words.last_mut().unwrap();
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if letter == open => quote = None,
            (None, '\\') => match letters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.push(escaped),
            },
            (None, ' ' | '\n') => words.push(String::new()),
            _ => word.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn a_command_is_read_as_a_shell_reads_it() {
    let text = "curl -sS -X PUT \"$URL/a b\" \\\n  -H \"x-api-key: $SIK\" \\\n  -d '{ \"a\": \"it'\\''s\" }'";
    let read = PastedCommand::from_text(text);
    assert_eq!(
        (
            read.method.as_str(),
            read.path.as_str(),
            read.key.as_deref()
        ),
        ("PUT", "/a b", Some("SIK"))
    );
    assert_eq!(read.body.unwrap()["a"], "it's");
}

const API_GUIDE: &str = include_str!("../../docs/api.md");

/// Returns the blocks of a language in a guide, each with the text before it.
fn blocks<'g>(guide: &'g str, language: &str) -> Vec<(&'g str, &'g str)> {
    let start = format!("```{language}\n");
    let starts = guide.match_indices(start.as_str());
    starts
        .map(|(at, _)| {
            let block = &guide[at + start.len()..];
            (&guide[..at], &block[..block.find("```").unwrap()])
        })
        .collect()
}

/// Returns the files and variables that a command needs: what follows `@` and `$`.
fn needed_names(command: &str, sign: char) -> BTreeSet<&str> {
    let parts = command.split(sign).skip(1);
    let names = parts.map(|part| {
        let end = part.find(|letter: char| !(letter.is_alphanumeric() || "-._".contains(letter)));
        &part[..end.unwrap_or(part.len())]
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_commands_of_the_guide_need_only_what_the_guide_has_made_before() {
    // The reader's own, of which the text says what they are.
    let own = ["BATCH_NO", "OPK", "SANDBOX"];
    let mut seen = 0;
    for (before, block) in blocks(API_GUIDE, "sh") {
        for (position, line) in block.split_inclusive('\n').scan(0, |at, line| {
            let position = *at;
            *at += line.len();
            Some((position, line))
        }) {
            let earlier = format!("{before}{}", &block[..position]);
            for file in needed_names(line, '@') {
                let is_made = ["as `F`", "-o F", "> F"]
                    .iter()
                    .any(|way| earlier.contains(&way.replace('F', file)));
                assert!(is_made || own.contains(&file), "{file} of {line}");
                seen += 1;
            }
            for variable in needed_names(line, '$') {
                let is_set = format!("{earlier}{line}").contains(&format!("{variable}="));
                assert!(is_set || own.contains(&variable), "{variable} of {line}");
            }
            assert!(
                !line.contains("uuidgen"),
                "not every machine has it: {line}"
            );
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[on_sqlite]
async fn the_document_to_validate_gets_the_patch_that_the_guide_shows(world: &World) {
    let json = blocks(API_GUIDE, "json");
    let saved = json
        .iter()
        .find(|(before, _)| before.trim_end().ends_with("as `validate.json`:"));
    let document = strict_json::from_trusted(saved.unwrap().1).unwrap();
    let shown = json
        .iter()
        .find(|(_, block)| block.starts_with("\"patch\""));
    let shown = format!("{{ {} }}", shown.unwrap().1);
    let shown: Value = strict_json::from_trusted(&shown).unwrap();
    let taxpayer = world.taxpayer().await;
    let own = validation(&taxpayer, "INV0002");
    let document = ["business_id", "irn", "accounting_supplier_party"]
        .iter()
        .fold(document, |document, name| {
            with(&document, name, own[name].clone())
        });
    let path = "/v1/app/invoices/validate?explain=patch";
    let answer = taxpayer.send("POST", path, &document).await;
    let body = answer.expect_refusal(400, "VALIDATION_FAILED").body;
    for name in ["patch", "patch_suffices"] {
        assert_eq!(body[name], shown[name], "{name}: {body}");
    }
}
