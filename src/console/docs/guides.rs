//! The guides: files of `docs/`, each divided into an introduction and its sections.

use std::sync::LazyLock;

use crate::console::docs::markdown;

/// A guide, which is one file of `docs/`.
pub(super) struct Guide {
    /// The name of the file, without `.md`.
    pub(super) name: &'static str,
    /// The name of the guide in the navigation.
    pub(super) label: &'static str,
    pub(super) text: &'static str,
    pub(super) title: &'static str,
    /// The text before the first section, in Markdown.
    pub(super) introduction: &'static str,
    pub(super) sections: Vec<Section>,
}

/// A section of a guide, which has a page of its own.
pub(super) struct Section {
    /// The name of the section in addresses.
    pub(super) slug: String,
    pub(super) title: &'static str,
    /// The text below the title, in Markdown.
    pub(super) text: &'static str,
}

macro_rules! file {
    ($name:literal, $label:literal) => {
        (
            $name,
            $label,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/", $name, ".md")),
        )
    };
}

/// The name, the label and the text of each guide.
const FILES: [(&str, &str, &str); 7] = [
    file!("api", "Using the API"),
    file!("contract", "The contract"),
    file!("corrections", "Corrections"),
    file!("import", "Import"),
    file!("explain", "Rejections"),
    file!("operations", "Operation"),
    file!("security", "Security"),
];

static GUIDES: LazyLock<Vec<Guide>> =
    LazyLock::new(|| FILES.into_iter().map(Guide::from).collect());

pub(super) fn all() -> &'static [Guide] {
    &GUIDES
}

pub(super) fn find_guide(name: &str) -> Option<&'static Guide> {
    all().iter().find(|guide| guide.name == name)
}

impl From<(&'static str, &'static str, &'static str)> for Guide {
    fn from(file: (&'static str, &'static str, &'static str)) -> Self {
        let (name, label, text) = file;
        let mut parts = split_sections(text).into_iter();
        let head = parts.next().unwrap_or_default();
        let (title, introduction) = head.split_once('\n').unwrap_or((head, ""));
        let sections = parts.map(|part| {
            let (title, text) = part.split_once('\n').unwrap_or((part, ""));
            let title = title.trim_start_matches('#').trim();
            Section {
                slug: markdown::slug(title),
                title,
                text,
            }
        });
        Self {
            name,
            label,
            text,
            title: title.trim_start_matches('#').trim(),
            introduction,
            sections: sections.collect(),
        }
    }
}

/// Splits a text before each line that begins with `## `, except inside of code blocks.
fn split_sections(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut position = 0;
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && line.starts_with("## ") {
            starts.push(position);
        }
        position += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &text[*start..end])
        .collect()
}

impl Section {
    /// Returns the title without backticks.
    pub(super) fn plain_title(&self) -> String {
        self.title.replace('`', "")
    }
}

impl Guide {
    pub(super) fn path(&self) -> String {
        format!("/docs/guides/{}", self.name)
    }

    pub(super) fn section_path(&self, section: &Section) -> String {
        format!("{}/{}", self.path(), section.slug)
    }

    /// Returns the paths of all pages of the guide.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        let sections = self.sections.iter();
        std::iter::once(self.path()).chain(sections.map(|section| self.section_path(section)))
    }

    pub(super) fn section(&self, slug: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.slug == slug)
    }

    /// Returns the text in Markdown as HTML, with its links as links between pages.
    pub(super) fn html(&self, text: &str) -> String {
        markdown::render(text, |target| self.resolve_link(target))
    }

    /// Returns the guide as a file of Markdown. Its links to other guides lead to their files.
    pub(super) fn markdown(&self) -> String {
        markdown::resolve_links(self.text, |target| {
            if is_guide_link(target) {
                Some(target.to_owned())
            } else {
                self.resolve_link(target)
            }
        })
    }

    /// Returns the address for a link in the file; `None` if its target has no page here.
    fn resolve_link(&self, target: &str) -> Option<String> {
        if target.starts_with("https://") {
            return Some(target.to_owned());
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        if file == "fields.md" {
            return Some("/docs/reference".to_owned());
        }
        let guide = if file.is_empty() {
            self
        } else {
            find_guide_by_file(file)?
        };
        if anchor.is_empty() {
            return Some(guide.path());
        }
        guide.anchor_path(anchor)
    }

    /// Returns the address of the heading with this anchor.
    fn anchor_path(&self, anchor: &str) -> Option<String> {
        if let Some(section) = self.section(anchor) {
            return Some(self.section_path(section));
        }
        let section = self
            .sections
            .iter()
            .find(|section| markdown::headings(section.text).any(|heading| heading == anchor))?;
        Some(format!("{}#{anchor}", self.section_path(section)))
    }
}

/// True if a link in a guide leads to a place in this guide or in another guide.
fn is_guide_link(target: &str) -> bool {
    let file = target.split('#').next().unwrap_or_default();
    file.is_empty() || find_guide_by_file(file).is_some()
}

/// Returns the guide that is in this file of `docs/`.
fn find_guide_by_file(file: &str) -> Option<&'static Guide> {
    find_guide(file.strip_suffix(".md")?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_section_of_a_guide_has_an_address_of_its_own() {
        let paths: Vec<_> = all().iter().flat_map(Guide::paths).collect();
        let different: BTreeSet<_> = paths.iter().collect();
        assert_eq!(different.len(), paths.len());
        assert!(paths.len() > 60, "{paths:?}");
        assert!(paths.contains(&"/docs/guides/api/sending-twice".to_owned()));
    }

    #[test]
    fn a_line_of_code_begins_no_section() {
        let parts = split_sections("# A\n```sh\n## b\n```\n## C\nd\n");
        assert_eq!(parts, ["# A\n```sh\n## b\n```\n", "## C\nd\n"]);
    }

    #[test]
    fn a_link_between_files_leads_to_a_page() {
        let guide = find_guide("api").unwrap();
        for (target, address) in [
            (
                "https://www.standardwebhooks.com/",
                Some("https://www.standardwebhooks.com/"),
            ),
            ("contract.md", Some("/docs/guides/contract")),
            ("fields.md", Some("/docs/reference")),
            (
                "contract.md#import",
                Some("/docs/guides/contract/creating-invoices#import"),
            ),
            ("#sending-twice", Some("/docs/guides/api/sending-twice")),
            ("#nowhere", None),
            ("../deploy/einvoice.service", None),
            ("adr/README.md", None),
        ] {
            assert_eq!(guide.resolve_link(target).as_deref(), address, "{target}");
        }
    }

    /// A link that leads nowhere is shown as plain words, so nobody would see that it is broken.
    #[test]
    fn each_link_to_a_heading_of_a_guide_is_resolved() {
        for guide in all() {
            for target in markdown::links(guide.text) {
                assert!(
                    !is_guide_link(&target) || guide.resolve_link(&target).is_some(),
                    "{}: {target}",
                    guide.name
                );
            }
        }
    }

    #[test]
    fn a_guide_in_markdown_has_no_link_to_a_file_that_is_not_served() {
        for guide in all() {
            let file = guide.markdown();
            assert!(file.starts_with("# "), "{}", guide.name);
            assert!(!file.contains("](images/"), "{}", guide.name);
            for target in markdown::links(&file) {
                let is_served = is_guide_link(&target)
                    || target.starts_with("https://")
                    || target == "/docs/reference";
                assert!(is_served, "{}: {target}", guide.name);
            }
        }
    }
}
