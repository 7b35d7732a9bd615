//! Renders the Markdown of the guides as HTML that the pages may show: without styles of its own, with anchors at
//! headings, and with tables and code blocks that scroll on a narrow screen. Also replaces the links in Markdown.

use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

/// Returns the text as HTML. `resolve` turns the target of a link into an address; a link without an address becomes
/// plain text. A heading of the third level becomes `h2`, because it is the highest below the title of a section.
pub(super) fn render(text: &str, resolve: impl Fn(&str) -> Option<String>) -> String {
    let events: Vec<_> = parse(text).collect();
    let mut rendered = Vec::with_capacity(events.len());
    // One entry for each link that has begun and not ended: true if the link has an address.
    let mut open_links = Vec::new();
    for (position, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                let address = resolve(dest_url);
                open_links.push(address.is_some());
                rendered.extend(address.map(link_start));
            }
            Event::End(TagEnd::Link) => {
                if open_links.pop() == Some(true) {
                    rendered.push(raw_html("</a>"));
                }
            }
            Event::Start(Tag::Heading { level, .. }) => {
                let title = plain_text(&events[position..], TagEnd::Heading(*level));
                rendered.push(heading_start(*level, &title));
            }
            Event::End(TagEnd::Heading(level)) => {
                rendered.push(Event::End(TagEnd::Heading(page_level(*level))));
            }
            Event::Start(Tag::CodeBlock(_)) => {
                rendered.push(raw_html("<pre class=\"body\" tabindex=\"0\"><code>"));
            }
            Event::End(TagEnd::CodeBlock) => rendered.push(raw_html("</code></pre>")),
            Event::Start(Tag::Table(_)) => {
                rendered.push(raw_html(
                    "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">",
                ));
                // A table with alignments would have inline styles, which the content policy of the pages forbids.
                rendered.push(Event::Start(Tag::Table(Vec::new())));
            }
            Event::End(TagEnd::Table) => {
                rendered.push(Event::End(TagEnd::Table));
                rendered.push(raw_html("</div>"));
            }
            Event::InlineHtml(tag) if &**tag == "<br>" => rendered.push(Event::HardBreak),
            Event::InlineHtml(tag) if tag.starts_with("<!--") => {}
            Event::InlineHtml(tag) => rendered.push(Event::Text(tag.clone())),
            // HTML and comments are dropped. A picture is replaced by its text.
            Event::Html(_)
            | Event::Start(Tag::Image { .. } | Tag::HtmlBlock)
            | Event::End(TagEnd::Image | TagEnd::HtmlBlock) => {}
            other => rendered.push(other.clone()),
        }
    }
    let mut page = String::new();
    html::push_html(&mut page, rendered.into_iter());
    page
}

/// Returns the Markdown with each link target replaced by the address from `resolve`. A link without an address becomes
/// plain text, as does each picture.
pub(super) fn resolve_links(text: &str, resolve: impl Fn(&str) -> Option<String>) -> String {
    let mut linked = String::with_capacity(text.len());
    let mut copied_until = 0;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let address = match &event {
            Event::Start(Tag::Link {
                link_type: LinkType::Inline,
                dest_url,
                ..
            }) => resolve(dest_url),
            Event::Start(Tag::Image { .. }) => None,
            _ => continue,
        };
        let Some((before_target, _)) = text[range.clone()].rsplit_once("](") else {
            continue;
        };
        if range.start < copied_until {
            continue;
        }
        linked.push_str(&text[copied_until..range.start]);
        let words = before_target
            .trim_start_matches('!')
            .trim_start_matches('[');
        match address {
            Some(address) => linked.extend(["[", words, "](", address.as_str(), ")"]),
            None => linked.push_str(words),
        }
        copied_until = range.end;
    }
    linked.push_str(&text[copied_until..]);
    linked
}

/// Returns the anchors of the headings in a text.
pub(super) fn headings(text: &str) -> impl Iterator<Item = String> {
    let events: Vec<_> = parse(text).collect();
    let titles: Vec<_> = events
        .iter()
        .enumerate()
        .filter_map(|(position, event)| match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let title = plain_text(&events[position..], TagEnd::Heading(*level));
                Some(slug(&title))
            }
            _ => None,
        })
        .collect();
    titles.into_iter()
}

/// Returns the targets of all links in a text.
#[cfg(test)]
pub(super) fn links(text: &str) -> Vec<String> {
    let targets = parse(text).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    });
    targets.collect()
}

/// Returns the anchor of a heading in the way that code hosts such as GitHub make it: letters, digits and hyphens.
pub(super) fn slug(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
            _ => None,
        })
        .collect()
}

fn parse(text: &str) -> impl Iterator<Item = Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

fn raw_html(markup: &'static str) -> Event<'static> {
    Event::Html(CowStr::Borrowed(markup))
}

fn link_start(address: String) -> Event<'static> {
    Event::Start(Tag::Link {
        link_type: LinkType::Inline,
        dest_url: address.into(),
        title: CowStr::Borrowed(""),
        id: CowStr::Borrowed(""),
    })
}

fn heading_start(level: HeadingLevel, title: &str) -> Event<'static> {
    Event::Start(Tag::Heading {
        level: page_level(level),
        id: Some(slug(title).into()),
        classes: Vec::new(),
        attrs: Vec::new(),
    })
}

/// Returns the level at which a heading is shown. The title of the section is `h1`, so the levels below it begin with
/// `h2`.
fn page_level(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 | HeadingLevel::H3 => HeadingLevel::H2,
        HeadingLevel::H4 => HeadingLevel::H3,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H4,
    }
}

/// Returns the text up to this end event.
fn plain_text(events: &[Event<'_>], end: TagEnd) -> String {
    let inside = events.iter().take_while(|event| **event != Event::End(end));
    let words = inside.filter_map(|event| match event {
        Event::Text(words) | Event::Code(words) => Some(&**words),
        _ => None,
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_headings_tables_and_code_that_fit_it() {
        let text = "### Keys & `secrets`\n\nSee [one](a.md) and [two](b.md).<!-- no --> <b>\n\n| A | B |\n|---|:-:|\n| 1<br>2 | 3 |\n\n```sh\na < b\n```\n";
        let shown = render(text, |target| (target == "a.md").then(|| "/a".to_owned()));
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                r#"<h2 id="keys--secrets">Keys &amp; <code>secrets</code></h2>"#,
                r#"<p>See <a href="/a">one</a> and two. &lt;b&gt;</p>"#,
                r#"<div class="wide" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th>A</th><th>B</th></tr></thead><tbody>"#,
                "<tr><td>1<br />",
                "2</td><td>3</td></tr>",
                "</tbody></table>",
                r#"</div><pre class="body" tabindex="0"><code>a &lt; b"#,
                "</code></pre>",
            ]
        );
    }

    #[test]
    fn links_of_a_text_lead_elsewhere_or_become_words() {
        let text = "# A [b](b.md)\n\n| [`c`](b.md#x) | ![a *picture*](d.svg) |\n|---|---|\n| [e f](g.md) | `[h](g.md)` |\n\n\
                    ```\n[i](g.md)\n```\n<https://x.example> [j\nk](g.md).\n";
        let linked = resolve_links(text, |target| {
            let anchor = target.strip_prefix("b.md")?;
            Some(format!("/b{anchor}"))
        });
        let expected = "# A [b](/b)\n\n| [`c`](/b#x) | a *picture* |\n|---|---|\n| e f | `[h](g.md)` |\n\n\
                        ```\n[i](g.md)\n```\n<https://x.example> j\nk.\n";
        assert_eq!(linked, expected);
    }

    #[test]
    fn an_anchor_is_made_of_the_words_of_its_heading() {
        for (title, anchor) in [
            ("Sending twice", "sending-twice"),
            ("`authority_data.status`", "authority_datastatus"),
            ("The envelope, and failures", "the-envelope-and-failures"),
            ("Operators' endpoints", "operators-endpoints"),
        ] {
            assert_eq!(slug(title), anchor);
        }
        let text = "### One `two`\n\n```\n### no\n```\n#### Three\n";
        assert!(headings(text).eq(["one-two", "three"]));
    }
}
