//! Panics as values: caught around guarded code, with their text and place, and proof that they unwind.
//!
//! Whoever catches a panic logs it, once. The hook keeps the default hook silent for guarded code only; every
//! other panic is reported as before. The text is the panic's own; nothing of a command is added to it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, Location, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a panic said, with file and line where the hook is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaughtPanic {
    pub text: String,
}

/// Refuses to start in a build whose panics abort: supervision would be a fiction there.
pub fn assert_unwinding() -> Result<(), &'static str> {
    if cfg!(panic = "unwind") {
        Ok(())
    } else {
        Err("this build aborts on a panic; actors restart after one, so build with panic = \"unwind\"")
    }
}

/// Silences the default report of panics that `catch` will report itself. Once a process; again is harmless.
pub fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            if GUARDED.get() {
                PLACE.set(panic.location().map(Location::to_string));
            } else {
                default(panic);
            }
        }));
    });
}

/// Runs `work`; its panic becomes a value. What `work` borrowed may be half-changed after a panic: the caller
/// throws it away or knows how to recover it.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.map_err(|payload| CaughtPanic { text: text(payload.as_ref(), PLACE.take()) })
}

fn text(payload: &(dyn Any + Send), place: Option<String>) -> String {
    let said = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text");
    match place {
        Some(place) => format!("{said} at {place}"),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_build_unwinds() {
        assert_eq!(assert_unwinding(), Ok(()));
    }

    #[test]
    fn a_caught_panic_says_its_text_and_its_place() {
        install_hook();
        let caught = catch(|| panic!("no row {}", 7)).unwrap_err();
        assert!(caught.text.starts_with("no row 7 at src"), "{}", caught.text);
        assert_eq!(catch(|| 5), Ok(5));
    }

    #[test]
    fn a_caught_panic_inside_guarded_code_leaves_the_outer_guard_in_place() {
        install_hook();
        let caught = catch(|| {
            assert!(catch(|| panic!("inner")).is_err());
            assert!(GUARDED.get());
            panic!("outer");
        });
        assert!(caught.unwrap_err().text.starts_with("outer"));
        assert!(!GUARDED.get());
    }
}
