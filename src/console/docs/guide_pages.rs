//! The pages of the guides: a guide with its introduction and its contents, one of its sections, and the whole guide as
//! Markdown.

use std::future::{Ready, ready};

use actix_web::{HttpResponse, web};
use askama::Template;

use crate::console::docs::docs_frame::docs_frame;
use crate::console::docs::guides::{self, Guide, Section};
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/docs/guides/{guide}").page(show_guide),
        path("/docs/guides/{guide}/{section}").page(show_section),
    ]
}

#[derive(Template)]
#[template(path = "docs/guide.html")]
struct GuidePage {
    frame: Frame,
    guide: &'static Guide,
    html: String,
}

#[derive(Template)]
#[template(path = "docs/section.html")]
struct SectionPage {
    frame: Frame,
    guide: &'static Guide,
    section: &'static Section,
    html: String,
    previous: Option<&'static Section>,
    next: Option<&'static Section>,
}

/// GET /docs/guides/{guide}: returns the page of a guide, or the guide itself if the name ends in `.md`.
fn show_guide(name: web::Path<String>) -> Ready<Answer> {
    let file = name.into_inner();
    let stem = file.strip_suffix(".md");
    let Some(guide) = guides::find_guide(stem.unwrap_or(&file)) else {
        return ready(Err(ApiError::route_not_found()));
    };
    if stem.is_some() {
        return ready(Ok(markdown_file(guide.markdown())));
    }
    ready(show(&GuidePage {
        frame: docs_frame(guide.title, guide.label),
        guide,
        html: guide.html(guide.introduction),
    }))
}

/// GET /docs/guides/{guide}/{section}: returns the page of a section.
fn show_section(names: web::Path<(String, String)>) -> Ready<Answer> {
    let (guide, slug) = names.into_inner();
    let found = guides::find_guide(&guide).and_then(|guide| {
        let position = guide.sections.iter().position(|one| one.slug == slug)?;
        Some((guide, position))
    });
    let Some((guide, position)) = found else {
        return ready(Err(ApiError::route_not_found()));
    };
    let section = &guide.sections[position];
    let previous = position.checked_sub(1);
    ready(show(&SectionPage {
        frame: docs_frame(&section.plain_title(), guide.label),
        guide,
        section,
        html: guide.html(section.text),
        previous: previous.and_then(|position| guide.sections.get(position)),
        next: guide.sections.get(position + 1),
    }))
}

/// Returns a text in Markdown as a file.
pub(super) fn markdown_file(text: impl Into<String>) -> HttpResponse {
    let text: String = text.into();
    HttpResponse::Ok()
        .content_type("text/markdown; charset=utf-8")
        .body(text)
}
