//! Style, script and icon of the pages, embedded in the binary. Their addresses contain a hash of their content, so
//! browsers may cache them for ever.

use std::future::{self, Ready};
use std::sync::LazyLock;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpResponse, web};
use sha2::{Digest, Sha256};

use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;

/// A file of the pages: its name, its media type and its content.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const STYLE: Asset = Asset {
    name: "console.css",
    media_type: "text/css; charset=utf-8",
    content: include_str!("assets/console.css"),
};
const SCRIPT: Asset = Asset {
    name: "console.js",
    media_type: "text/javascript; charset=utf-8",
    content: include_str!("assets/console.js"),
};
const ICON: Asset = Asset {
    name: "icon.svg",
    media_type: "image/svg+xml",
    content: include_str!("assets/icon.svg"),
};

/// The addresses of the assets, for the frame of a page.
#[derive(Debug)]
pub(crate) struct AssetAddresses {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

pub(crate) static ASSET_ADDRESSES: LazyLock<AssetAddresses> = LazyLock::new(|| AssetAddresses {
    style: STYLE.address(),
    script: SCRIPT.address(),
    icon: ICON.address(),
});

impl Asset {
    fn address(&self) -> String {
        let hash = hex::encode(&Sha256::digest(self.content)[..6]);
        format!("/assets/{hash}/{}", self.name)
    }
}

pub(super) fn paths() -> Vec<Path> {
    vec![path("/assets/{hash}/{name}").page(serve_asset)]
}

/// GET /assets/{hash}/{name}: returns a file of the pages.
fn serve_asset(names: web::Path<(String, String)>) -> Ready<Result<HttpResponse, ApiError>> {
    let (hash, name) = names.into_inner();
    let path = format!("/assets/{hash}/{name}");
    let found = [STYLE, SCRIPT, ICON]
        .into_iter()
        .find(|asset| asset.address() == path);
    let Some(asset) = found else {
        return future::ready(Err(ApiError::route_not_found()));
    };
    future::ready(Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, asset.media_type))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .body(asset.content)))
}
