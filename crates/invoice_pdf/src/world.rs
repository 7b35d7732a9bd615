//! The files that a template can read: those of one document, in memory. It has no access to the file system, network
//! or clock.

use std::sync::OnceLock;

use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Duration};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt as _, World};

use crate::PdfError;
use crate::fonts::Fonts;

/// The sources of the templates by name. They are parsed once.
const TEMPLATES: [(&str, &str); 4] = [
    ("parts.typ", include_str!("../templates/parts.typ")),
    ("classic.typ", include_str!("../templates/classic.typ")),
    ("compact.typ", include_str!("../templates/compact.typ")),
    ("logo.typ", include_str!("../templates/logo.typ")),
];

/// The files that typst may read while it typesets one document.
pub struct PageWorld {
    main: FileId,
    files: Vec<(&'static str, Bytes)>,
}

impl PageWorld {
    pub fn new(template: &str, files: Vec<(&'static str, Bytes)>) -> Result<Self, PdfError> {
        let main = template_sources()
            .iter()
            .find(|source| name(source.id()) == template)
            .ok_or_else(|| PdfError::Internal(format!("there is no template {template}")))?
            .id();
        Ok(Self { main, files })
    }
}

impl World for PageWorld {
    fn library(&self) -> &LazyHash<Library> {
        static LIBRARY: OnceLock<LazyHash<Library>> = OnceLock::new();
        LIBRARY.get_or_init(|| LazyHash::new(Library::default()))
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &Fonts::get().book
    }

    fn main(&self) -> FileId {
        self.main
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        let source = template_sources().iter().find(|source| source.id() == id);
        source.cloned().ok_or(FileError::AccessDenied)
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        let is_project = *id.root() == VirtualRoot::Project;
        self.files
            .iter()
            .find(|(file, _)| is_project && *file == name(id))
            .map(|(_, bytes)| bytes.clone())
            .ok_or(FileError::AccessDenied)
    }

    fn font(&self, index: usize) -> Option<Font> {
        Fonts::get().fonts.get(index).cloned()
    }

    fn today(&self, _offset: Option<Duration>) -> Option<Datetime> {
        None
    }
}

fn template_sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        TEMPLATES
            .into_iter()
            .filter_map(|(name, text)| {
                let path = VirtualPath::new(name).ok()?;
                let id = RootedPath::new(VirtualRoot::Project, path).intern();
                Some(Source::new(id, text.to_owned()))
            })
            .collect()
    })
}

fn name(id: FileId) -> &'static str {
    id.get().vpath().get_without_slash()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> FileId {
        RootedPath::new(VirtualRoot::Project, VirtualPath::new(name).unwrap()).intern()
    }

    #[test]
    fn a_template_reads_its_own_files_and_nothing_else() {
        let files = vec![("data.json", Bytes::new(*b"{}"))];
        let world = PageWorld::new("classic.typ", files).unwrap();
        assert_eq!(template_sources().len(), TEMPLATES.len());
        assert!(world.file(id("data.json")).is_ok());
        assert!(world.source(id("parts.typ")).is_ok());
        for other in ["Cargo.toml", "etc/passwd", "logo.png"] {
            assert_eq!(
                world.file(id(other)),
                Err(FileError::AccessDenied),
                "{other}"
            );
            assert_eq!(
                world.source(id(other)).err(),
                Some(FileError::AccessDenied),
                "{other}"
            );
        }
        assert!(world.today(None).is_none());
    }
}
