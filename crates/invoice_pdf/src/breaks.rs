//! Removes the marks at which a line may end from finished pages. Each mark is a character: if it stayed, it would be
//! part of every number and address that somebody copies out of the PDF.

use typst::layout::{Frame, FrameItem};
use typst::model::Document as _;
use typst::text::TextItem;
use typst_layout::{Page, PagedDocument};

use crate::text::BREAK;

/// Returns the same pages without marks in their texts.
pub fn remove_break_marks(pages: &PagedDocument) -> PagedDocument {
    let cleaned = pages.pages().iter().map(|page| {
        let mut page: Page = page.clone();
        remove_marks_from_frame(&mut page.frame);
        page
    });
    PagedDocument::new(cleaned.collect(), pages.info().clone())
}

fn remove_marks_from_frame(frame: &mut Frame) {
    // A frame without marks is not changed, because typst shares frames and a change makes a copy.
    if !has_break_marks(frame) {
        return;
    }
    frame.retain(|item| {
        match item {
            FrameItem::Group(group) => remove_marks_from_frame(&mut group.frame),
            FrameItem::Text(text) => remove_marks_from_text(text),
            _ => {}
        }
        true
    });
}

fn has_break_marks(frame: &Frame) -> bool {
    frame.items().any(|(_, item)| match item {
        FrameItem::Group(group) => has_break_marks(&group.frame),
        FrameItem::Text(text) => text.text.contains(BREAK),
        _ => false,
    })
}

/// Removes the marks from a text, and corrects the position in the text that each glyph records. Marks have no width.
fn remove_marks_from_text(item: &mut TextItem) {
    let marks: Vec<usize> = item.text.match_indices(BREAK).map(|(at, _)| at).collect();
    let moved = |at: u16| {
        let before = marks.iter().filter(|mark| **mark < usize::from(at)).count();
        at.saturating_sub(u16::try_from(before * BREAK.len_utf8()).unwrap_or(u16::MAX))
    };
    for glyph in &mut item.glyphs {
        glyph.range = moved(glyph.range.start)..moved(glyph.range.end);
    }
    item.glyphs.retain(|glyph| !glyph.range.is_empty());
    item.text = item.text.chars().filter(|c| *c != BREAK).collect();
}
