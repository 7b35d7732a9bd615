//! A path of the service, with its handlers, its policy and its documentation.
//!
//! | Concept | File |
//! |---|---|
//! | one path, with its handlers, its policy and its documentation | `api_path` |
//! | a part of the API | `part` |
//! | all paths together: their order, and the pages above forms | `path_table` |
//! | the service of a path, and the answer to an unknown path | `path_service` |

mod api_path;
mod part;
mod path_service;
mod path_table;

pub(crate) use api_path::{Path, path};
pub(crate) use part::ApiPart;
pub(crate) use path_service::answer_unknown_path;
pub(crate) use path_table::{redirect_forms_to_pages, sort_by_precedence};
